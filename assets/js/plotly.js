// plotly's own script, from the installed package, loaded when the first figure needs it. It is
// kept under a name of our own at once: Gradio may load a bundled copy over window.Plotly.

let loading = null;

export function loadPlotly(url) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error("plotly.min.js did not load")));
    document.head.append(script);
  });
  return loading;
}
