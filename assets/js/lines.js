// Where text is drawn, nobody breaks its lines.

// Text in lines of so many letters at most, broken between words.
export function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) === "" ? word : lines.at(-1) + " " + word;
    if (longer.length <= most) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
