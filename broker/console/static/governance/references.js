// References in a governance file to values that it does not contain: whoever applies the file gives them.

/** `key`: as the broker expects it, such as `env:CRM_TOKEN`. `isKey`: the public key of an agent, which is not secret. @typedef {{ key: string, isKey: boolean }} Reference */
/** The request that plans or applies a file. @typedef {{ text: string, file: string, values: Record<string, string>, keep_secrets: boolean }} Sent */

/** Depth limit: deeper than any real file, and it stops at YAML aliases that refer to themselves. */
const MAX_DEPTH = 20;

/**
 * Returns each reference once, in the order of the file.
 *
 * @param {unknown} document the parsed file
 * @returns {Reference[]}
 */
export function referencesIn(document) {
  /** @type {Map<string, Reference>} */
  const found = new Map();
  const walk = (/** @type {unknown} */ value, /** @type {string} */ name, /** @type {number} */ depth) => {
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
    const [[kind, at] = [], ...others] = Object.entries(value);
    if (others.length === 0 && (kind === 'env' || kind === 'file') && typeof at === 'string') {
      const isKey = name === 'public_key';
      const known = found.get(`${kind}:${at}`);
      found.set(`${kind}:${at}`, { key: `${kind}:${at}`, isKey: isKey && known?.isKey !== false });
      return;
    }
    for (const [member, below] of Object.entries(value)) walk(below, member, depth + 1);
  };
  walk(document, '', 0);
  return [...found.values()];
}

/** Removes one line break at the end of a value, as the command line does. @param {string} text */
export const withoutLastBreak = (text) => text.replace(/\r?\n$/, '');
