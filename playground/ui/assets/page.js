// Gradio's sign of loading counts its tenths of a second anew at every frame, and the one of the page itself goes on
// for ever after it has been taken away: sixty frames a second of an idle page. Ten do.
(() => {
  "use strict";
  const frame = window.requestAnimationFrame.bind(window);
  const isClock = (callback) => {
    const words = Function.prototype.toString.call(callback);
    return words.length < 160 && words.includes("performance.now()");
  };
  window.requestAnimationFrame = (callback) =>
    isClock(callback) ? setTimeout(() => frame(callback), 100) : frame(callback);
})();
