// Extracts the fields of a platform from an OpenAPI document: name, address, authentication, and scopes by tag.
/** @typedef {import('/console/connections/own-entry.js').Own} Own */
/** @typedef {import('/console/connections/own-entry.js').Scopes} Scopes */
import { scopesAsText } from './own-entry.js';

/** Methods by their effect: reading, writing and deleting are separate scopes. @type {Record<string, string>} */
const KIND = { get: 'read', post: 'write', put: 'write', patch: 'write', delete: 'delete' };

/** @param {unknown} value @returns {Record<string, unknown>} */
const record = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? /** @type {Record<string, unknown>} */ (value)
    : {};
const text = (/** @type {unknown} */ value) => (typeof value === 'string' ? value : '');
const list = (/** @type {unknown} */ value) => (Array.isArray(value) ? value : []);
const slug = (/** @type {string} */ words) =>
  words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);

/**
 * Parses OpenAPI 3 or Swagger 2, as JSON or YAML. Throws Error with a message for a person.
 *
 * @param {string} written
 * @returns {Promise<Partial<Own> & { operations: number }>}
 */
export async function readOpenApi(written) {
  const document = record(await parsed(written));
  if (!text(document.openapi).startsWith('3.') && text(document.swagger) !== '2.0')
    throw new Error('This is not an OpenAPI document: it says neither openapi: 3.… nor swagger: "2.0".');
  const { scopes, operations } = scopesOf(record(document.paths));
  if (operations === 0) throw new Error('This document has no paths with operations.');
  const address = addressOf(document);
  const auth = authOf(document);
  const headers = headersOf(document).filter((name) => name !== auth.header?.toLowerCase());
  return {
    name: text(record(document.info).title),
    scopes: scopesAsText(scopes),
    operations,
    ...(address && { address }),
    ...auth,
    ...(headers.length > 0 && { more: `client_headers:\n${headers.map((name) => `  - ${name}\n`).join('')}` }),
  };
}

/** The maximum number of headers in a platform's entry. */
const MAX_HEADERS = 100;

/**
 * Returns the documented request headers (such as `X-Dry-Run`) in lower case, which unmodified clients may pass on. Covers parameters of paths and
 * operations, and those that they reference.
 *
 * @param {Record<string, unknown>} document
 */
function headersOf(document) {
  const shared = record(document.parameters ?? record(document.components).parameters);
  const names = new Set();
  const take = (/** @type {unknown} */ parameters) => {
    for (const one of list(parameters).map(record)) {
      const { in: where, name } = record(shared[text(one.$ref).split('/').at(-1) ?? ''] ?? one);
      const header = text(name).toLowerCase();
      if (
        where === 'header' &&
        /^[a-z0-9-]{1,100}$/.test(header) &&
        !/^(?:accept|authorization|content-.*)$/.test(header)
      )
        names.add(header);
    }
  };
  for (const item of Object.values(record(document.paths)).map(record)) {
    take(item.parameters);
    for (const method of Object.keys(KIND)) take(record(item[method]).parameters);
  }
  return [...names].slice(0, MAX_HEADERS);
}

/** @param {string} written */
async function parsed(written) {
  try {
    return JSON.parse(written);
  } catch {
    const { parse } = await import('/console/vendor/yaml/index.js');
    return parse(written, { maxAliasCount: 100 });
  }
}

/** Groups operations into scopes by the first tag, or without tags by the first part of the path. @param {Record<string, unknown>} paths */
function scopesOf(paths) {
  /** @type {Scopes} */
  const scopes = {};
  let operations = 0;
  for (const [path, item] of Object.entries(paths))
    for (const [method, operation] of Object.entries(record(item))) {
      const kind = KIND[method];
      if (!kind || !path.startsWith('/')) continue;
      const [, first = ''] = path.split('/');
      const area = slug(text(list(record(operation).tags)[0])) || slug(first) || 'root';
      const name = `api:${area}.${kind}`;
      scopes[name] ??= [];
      scopes[name].push(`${method.toUpperCase()} ${path.replace(/\{[^{}/]*\}/g, '*')}`);
      operations++;
    }
  return {
    scopes: Object.fromEntries(Object.entries(scopes).map(([name, rules]) => [name, [...new Set(rules)]])),
    operations,
  };
}

/** Returns the base URL: from `host` (Swagger 2), otherwise the first server with an absolute URL (OpenAPI 3). @param {Record<string, unknown>} document */
function addressOf(document) {
  const { host, basePath, schemes } = document;
  if (text(host))
    return `${list(schemes).includes('https') || list(schemes).length === 0 ? 'https' : 'http'}://${text(host)}${text(basePath)}`.replace(
      /\/+$/,
      '',
    );
  for (const server of list(document.servers)) {
    const { url, variables } = record(server);
    const whole = text(url).replace(/\{([^{}]*)\}/g, (_, name) => text(record(record(variables)[name]).default));
    if (/^https?:\/\//.test(whole)) return whole.replace(/\/+$/, '');
  }
  return undefined;
}

/** Returns the first security scheme that the broker supports. @param {Record<string, unknown>} document @returns {Partial<Own>} */
function authOf(document) {
  const schemes = Object.values(
    record(document.securityDefinitions ?? record(document.components).securitySchemes),
  ).map(record);
  for (const { type, in: where, name, scheme } of schemes) {
    if (type === 'basic' || (type === 'http' && text(scheme).toLowerCase() === 'basic')) return { auth: 'basic' };
    if (type === 'http' && text(scheme).toLowerCase() === 'bearer') return { auth: 'bearer' };
    if (type === 'apiKey' && where === 'query') return { auth: 'query', parameter: text(name) };
    // A bearer token declared as an API key in `Authorization`: the scheme before the token is part of the sent value.
    if (type === 'apiKey' && where === 'header' && text(name).toLowerCase() !== 'authorization')
      return { auth: 'header', header: text(name) };
  }
  return { auth: 'bearer' };
}
