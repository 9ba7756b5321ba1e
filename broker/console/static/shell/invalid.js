// An invalid field stops its form, and the browser focuses it: unless it is inside a closed `<details>`.

/** Opens every `<details>` around an invalid field. Call once per page. */
export function unfoldInvalid() {
  // In the capture phase, before the browser looks for the first focusable invalid field. The event does not bubble.
  document.addEventListener('invalid', ({ target }) => unfold(/** @type {Element} */ (target)), { capture: true });
}

/** @param {Element | null | undefined} element */
function unfold(element) {
  const around = element?.closest('details');
  if (!around) return;
  around.open = true;
  unfold(around.parentElement);
}
