// What a governance file names instead of writing it: whoever applies it gives the values.

/** `key`: as the broker takes it, such as `env:CRM_TOKEN`. `isKey`: of an agent, which is no secret. @typedef {{ key: string, isKey: boolean }} Reference */
/** What is sent of a file. @typedef {{ text: string, file: string, values: Record<string, string>, keep_secrets: boolean }} Sent */

/** More than any file has, also one that leads to itself. */
const MOST_DEEP = 20;

/**
 * Each once, in the order of the file.
 *
 * @param {unknown} document as it was parsed
 * @returns {Reference[]}
 */
export function referencesIn(document) {
  /** @type {Map<string, Reference>} */
  const found = new Map();
  const walk = (/** @type {unknown} */ value, /** @type {string} */ name, /** @type {number} */ depth) => {
    if (typeof value !== 'object' || value === null || depth > MOST_DEEP) return;
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

/** As the command line reads it: one line break at the end is not part of it. @param {string} text */
export const withoutLastBreak = (text) => text.replace(/\r?\n$/, '');
