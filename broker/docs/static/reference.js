// Renders the reference. Sends nothing to other hosts: the document is the broker's own, and the badge of its validator is off.
/** @type {HTMLElement | null} */
const place = document.querySelector('#reference');
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
follow();
dark.addEventListener('change', follow);

/** More than about a hundred operations in one part are not rendered: Swagger UI stops after some of them. */
const MAX_OPERATIONS = 80;

/**
 * The paths of a document in parts of at most 80 operations, those with one tag together.
 * @param {Record<string, Record<string, { tags?: string[] }>>} paths
 */
function partsOf(paths) {
  /** @type {Map<string, [string, Record<string, { tags?: string[] }>][]>} */
  const byTag = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    const tag = Object.values(methods)[0]?.tags?.[0] ?? '';
    byTag.set(tag, [...(byTag.get(tag) ?? []), [path, methods]]);
  }
  const parts = [{ size: 0, paths: /** @type {Record<string, object>} */ ({}) }];
  for (const entries of byTag.values()) {
    const size = entries.reduce((sum, [, methods]) => sum + Object.keys(methods).length, 0);
    let part = parts[parts.length - 1];
    if (!part || part.size + size > MAX_OPERATIONS) {
      part = { size: 0, paths: {} };
      parts.push(part);
    }
    part.size += size;
    Object.assign(part.paths, Object.fromEntries(entries));
  }
  return parts.filter((part) => part.size > 0).map((part) => part.paths);
}

// Defined by the separate script of Swagger UI.
const { SwaggerUIBundle } = /** @type {{ SwaggerUIBundle: (options: object) => unknown }} */ (
  /** @type {unknown} */ (globalThis)
);
const spec = await (await fetch(place?.dataset.document ?? '')).json();
const all = partsOf(spec.paths);
for (const [at, paths] of all.entries()) {
  const part = document.createElement('div');
  part.className = 'reference-part';
  place?.append(part);
  SwaggerUIBundle({
    spec: { ...spec, paths, tags: undefined },
    domNode: part,
    deepLinking: true,
    validatorUrl: null,
    // Requests belong in an agent, which has the keys, and never in this page.
    supportedSubmitMethods: [],
    docExpansion: 'list',
    defaultModelsExpandDepth: at === all.length - 1 ? 0 : -1,
    defaultModelRendering: 'example',
    displayRequestDuration: false,
    tagsSorter: undefined,
    syntaxHighlight: { activated: true },
  });
}
