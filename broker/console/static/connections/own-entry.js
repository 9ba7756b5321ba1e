// Converts the form for an API or an MCP server to a platform entry of a governance file.
/** @typedef {'rest' | 'mcp'} Kind */
/** @typedef {Record<string, string[]>} Scopes */

/**
 * `scopes`: text, each scope on a line of its own above what it allows. `more`: further members of the entry, in YAML.
 *
 * @typedef {{
 *   id: string, name: string, address: string, auth: AuthType, header: string, prefix: string, parameter: string, issuer: string,
 *   client_id: string, client_secret: string, consent: string, scopes: string, more: string,
 * }} Own
 */

/** How a credential is sent, in words. @typedef {'bearer' | 'header' | 'basic' | 'query' | 'oauth2'} AuthType */
/** @type {Record<AuthType, string>} */
export const AUTHS = {
  bearer: 'A token, as Authorization: Bearer',
  header: 'A key in a separate header',
  basic: 'User and password (Basic)',
  query: 'A key in the address (query parameter)',
  oauth2: 'OAuth: you consent in the browser',
};

/** @type {Own} */
export const NOTHING = {
  id: '',
  name: '',
  address: '',
  auth: 'bearer',
  header: 'X-Api-Key',
  prefix: '',
  parameter: 'key',
  issuer: '',
  client_id: '',
  client_secret: '',
  consent: '',
  scopes: '',
  more: '',
};

const OPERATION = /^(?:(?:GET|HEAD|POST|PUT|PATCH|DELETE)\s+\/|(?:tool|query|mutation)\s+\S)/;

/**
 * Parses the text of scopes; a name without a colon gets the platform's id as prefix. Throws Error with a message for a person.
 *
 * @param {string} text
 * @param {string} id
 * @returns {Scopes}
 */
export function scopesIn(text, id) {
  /** @type {Scopes} */
  const scopes = {};
  let scope;
  for (const [at, line] of text.split('\n').entries()) {
    const words = line.trim().replace(/\s+/g, ' ');
    if (words === '') continue;
    if (OPERATION.test(words)) {
      if (!scope) throw new Error(`Line ${at + 1}: the name of a scope comes before what it allows.`);
      scope.push(words);
    } else if (words.includes(' '))
      throw new Error(
        `Line ${at + 1}: write the name of a scope, or what it allows, such as GET /contacts/* or tool search_*.`,
      );
    else {
      const name = words.includes(':') ? words : `${id}:${words}`;
      scopes[name] ??= [];
      scope = scopes[name];
    }
  }
  const empty = Object.keys(scopes).find((name) => scopes[name]?.length === 0);
  if (empty) throw new Error(`${empty}: say what it allows on the lines below it.`);
  if (Object.keys(scopes).length === 0) throw new Error('Write at least one scope, and what it allows.');
  return scopes;
}

/** Formats scopes as the text that scopesIn parses. @param {Scopes} scopes */
export const scopesAsText = (scopes) =>
  Object.entries(scopes)
    .map(([name, rules]) => [name.slice(name.indexOf(':') + 1), ...rules.map((rule) => `  ${rule}`)].join('\n'))
    .join('\n');

/** Returns the reference by which an exported governance file names the client secret. @param {string} id */
const reference = (id) => ({
  env: `${id}_client_secret`
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, '_')
    .replace(/^(?=\d)/, '_'),
});

/** @param {Own} own */
function authOf({ auth, header, prefix, parameter, issuer, client_id, client_secret, consent, id }) {
  if (auth === 'header') return { type: 'header', name: header.trim(), ...(prefix && { prefix }) };
  if (auth === 'query') return { type: 'query', name: parameter.trim() };
  if (auth !== 'oauth2') return { type: auth };
  const scopes = consent.split(/[\s,]+/).filter((one) => one !== '');
  return {
    type: 'oauth2',
    ...(issuer.trim() && { issuer: issuer.trim() }),
    ...(client_id.trim() && { client_id: client_id.trim() }),
    ...(client_secret && { client_secret: reference(id) }),
    ...(scopes.length > 0 && { scopes }),
  };
}

/**
 * Returns the entry for `POST /owner/platforms`. `more`: further members. Throws Error with a message for a person.
 *
 * @param {Kind} kind
 * @param {Own} own
 * @param {Record<string, unknown>} more
 */
export const entryOf = (kind, own, more) => ({
  kind,
  ...(own.name.trim() && { name: own.name.trim() }),
  base_url: own.address.trim(),
  auth: authOf(own),
  scopes: scopesIn(own.scopes, own.id.trim()),
  ...more,
});

/** Parses members in YAML; the YAML library is loaded only when the text is not empty. Throws Error with a message for a person. @param {string} text @returns {Promise<Record<string, unknown>>} */
export async function membersIn(text) {
  if (text.trim() === '') return {};
  const { parse } = await import('/console/vendor/yaml/index.js');
  const value = parse(text, { maxAliasCount: 100 });
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('Further settings: names and values belong here, such as docs: https://crm.example/docs.');
  return value;
}
