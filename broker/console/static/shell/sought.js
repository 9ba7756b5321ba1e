// What a filter asks for. It stands in the address, so that it can be shared and survives a reload.
import { navigate } from '/console/shell/router.js';

/**
 * The parameters of these names; empty: not asked for.
 *
 * @template {string} Name
 * @param {URL} place
 * @param {readonly Name[]} names
 * @returns {Record<Name, string>}
 */
export const soughtIn = ({ searchParams }, names) =>
  /** @type {Record<Name, string>} */ (Object.fromEntries(names.map((name) => [name, searchParams.get(name) ?? ''])));

export const isSought = (/** @type {Record<string, string>} */ sought) =>
  Object.values(sought).some((value) => value !== '');

/**
 * Asks for it at a page, without a step to go back to.
 *
 * @param {string} path
 * @param {Record<string, string>} sought
 */
export function seek(path, sought) {
  const query = new URLSearchParams(Object.entries(sought).filter(([, value]) => value !== '')).toString();
  navigate(query ? `${path}?${query}` : path, { replace: true });
}
