/* Applies the chosen theme before anything is drawn. Without a choice, the system's preference applies. */
(() => {
  const chosen = localStorage.getItem("seb.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
})();
