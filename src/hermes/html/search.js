"use strict";
(function () {
  var q = document.getElementById("q"), n = document.getElementById("n");
  var items = Array.prototype.slice.call(document.querySelectorAll("#list li"));
  var timer = 0;
  function run() {
    var word = q.value.trim().toLowerCase(), shown = 0;
    items.forEach(function (li) {
      var section = document.getElementById(li.firstElementChild.getAttribute("href").slice(1));
      var hit = !word || li.textContent.toLowerCase().indexOf(word) >= 0 || section.textContent.toLowerCase().indexOf(word) >= 0;
      li.hidden = !hit;
      section.hidden = !hit;
      if (hit) { shown += 1; }
    });
    n.textContent = word ? shown + " of " + items.length + " sessions" : "";
  }
  q.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(run, 150); });
})();
