// The values of a filter. They are in the address, so that a filtered list can be shared and survives a reload.
import { navigate } from '/console/shell/router.js';

/**
 * Returns the parameters of these names; empty when absent.
 *
 * @template {string} Name
 * @param {URL} place
 * @param {readonly Name[]} names
 * @returns {Record<Name, string>}
 */
export const filtersIn = ({ searchParams }, names) =>
  /** @type {Record<Name, string>} */ (Object.fromEntries(names.map((name) => [name, searchParams.get(name) ?? ''])));

export const isFiltered = (/** @type {Record<string, string>} */ filters) =>
  Object.values(filters).some((value) => value !== '');

/**
 * Navigates to a page with these filter values, without a history entry.
 *
 * @param {string} path
 * @param {Record<string, string>} filters
 */
export function applyFilters(path, filters) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== '')).toString();
  navigate(query ? `${path}?${query}` : path, { replace: true });
}
