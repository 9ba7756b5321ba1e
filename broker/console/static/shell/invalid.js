// A field that is not right stops its form, and the browser shows which one it is: unless it is folded away.

/** Opens every `<details>` around a field that stops its form. To be called once for a page. */
export function unfoldInvalid() {
  // Before the browser looks for the first one that can have the focus. The event does not bubble.
  document.addEventListener('invalid', ({ target }) => unfold(/** @type {Element} */ (target)), { capture: true });
}

/** @param {Element | null | undefined} element */
function unfold(element) {
  const around = element?.closest('details');
  if (!around) return;
  around.open = true;
  unfold(around.parentElement);
}
