// Draws the reference. Nothing is sent anywhere: the document is ours, and its validator's badge is off.
/** @type {HTMLElement | null} */
const place = document.querySelector('#reference');
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
follow();
dark.addEventListener('change', follow);

// A script of its own defines it.
/** @type {{ SwaggerUIBundle: (options: object) => unknown }} */ (/** @type {unknown} */ (globalThis)).SwaggerUIBundle({
  url: place?.dataset.document,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
  // Requests belong where the keys are: in an agent, never in this page.
  supportedSubmitMethods: [],
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  defaultModelRendering: 'example',
  displayRequestDuration: false,
  tagsSorter: undefined,
  syntaxHighlight: { activated: true },
});
