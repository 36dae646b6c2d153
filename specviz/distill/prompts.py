"""Prompts a draft is judged on, as (kind, prompt). None is part of a training corpus.

SELECTION chooses between checkpoints while training; REPORT is looked at once, at the end, so
that the figures in a model card are not those the checkpoint was chosen by.
"""

from __future__ import annotations

SELECTION: tuple[tuple[str, str], ...] = (
    ("chat", "What should I look for when I buy a second-hand bicycle?"),
    ("chat", "I feel nervous before exams. How can I calm down?"),
    ("chat", "Explain how a rainbow forms."),
    ("chat", "Who was Marie Curie and why is she famous?"),
    ("chat", "Give me five ideas for a rainy Sunday with two small children."),
    ("code", "Write a Python function that counts the vowels in a string."),
    ("code", "Write a JavaScript function that removes duplicates from an array."),
    ("code", "How do I read a CSV file with pandas and print the mean of a column?"),
    ("translation", "Translate into French: The train to Lyon leaves at eight in the morning."),
    ("translation", "Translate into Spanish: My sister bought a red umbrella yesterday."),
    (
        "summarising",
        "Summarise in two sentences: Honeybees live in large colonies. Each colony has one queen, "
        "who lays all the eggs. Workers clean the hive, feed the young and gather nectar. In "
        "winter the bees form a tight ball around the queen to keep her warm, and they live on "
        "the honey that they stored during the summer.",
    ),
    (
        "summarising",
        "Give the main point of this text: The city council decided on Monday to close the old "
        "bridge for repairs. The work will take eight months. Buses will use the northern bridge, "
        "and a free ferry for cyclists will run every fifteen minutes.",
    ),
    (
        "extraction",
        "List the names and the cities in this text: Anna Keller flew from Zurich to Oslo, where "
        "she met Tom Hansen. Later they travelled to Bergen together.",
    ),
    ("extraction", "Extract the date and the price: The concert on 14 May costs 35 euros."),
    ("arithmetic", "A box holds 12 eggs. How many eggs are in 7 boxes? Explain step by step."),
    ("arithmetic", "What is 15 percent of 240? Show your work."),
    ("story", "Tell me a story about a clockmaker who could hear the thoughts of clocks."),
    ("story", "Write a poem about the first snow of the year."),
    ("email", "Write a polite email that asks my landlord to repair the heating."),
    ("list", "List ten common kitchen tools and say what each is used for."),
)

REPORT: tuple[tuple[str, str], ...] = (
    ("story", "Write a short story about a lighthouse keeper."),
    ("story", "Write a fairy tale about a fox who wants to learn to swim."),
    ("chat", "How can I sleep better at night?"),
    ("chat", "What are the advantages of public transport in a big city?"),
    ("chat", "Explain why the sky is blue to a ten-year-old."),
    ("code", "Write a Python function that checks whether a number is prime."),
    ("code", "Write an SQL query that finds the three customers with the most orders."),
    ("translation", "Translate into German: Where can I find a good restaurant near the station?"),
    ("translation", "Translate into Italian: We will visit our grandparents next weekend."),
    (
        "summarising",
        "Summarise this text: Coral reefs cover less than one percent of the ocean floor, yet "
        "about a quarter of all sea animals live in them. Warmer water makes corals lose the "
        "algae that feed them, and they turn white. If the water cools down soon, they can "
        "recover; if not, they die. Protected areas and less pollution help the reefs to survive.",
    ),
    (
        "extraction",
        "Extract all names, dates and places from this text: On 3 March 1921 Clara Jensen opened "
        "a bakery in Aarhus. Her brother Niels joined her in 1924.",
    ),
    ("extraction", "Which colours appear in this sentence? The blue car passed a green house."),
    ("arithmetic", "Tom has 24 apples. He gives 9 to Mia and buys 13 more. How many has he now?"),
    ("arithmetic", "A train travels 180 km in 2.5 hours. What is its average speed?"),
)
