// The connection methods of a platform, in words.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {BuiltIn['ways'][number]['way']} Way */
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */

/** @type {Record<Way, string>} */
const SHORT = { token: 'token', oauth: 'OAuth', app: 'App' };

/** Such as `Token, OAuth or App`. @param {BuiltIn['ways']} ways */
export function describeWays(ways) {
  const words = ways.map(({ way }) => SHORT[way]);
  const last = words.pop() ?? '';
  const said = words.length > 0 ? `${words.join(', ')} or ${last}` : last;
  return said.slice(0, 1).toUpperCase() + said.slice(1);
}

/** Returns the connection method of an existing platform. @param {WholePlatform} platform @returns {Way} */
export function wayOf({ manifest }) {
  const { type } = /** @type {{ type?: string }} */ (manifest.auth ?? {});
  return type === 'oauth2' ? 'oauth' : type === 'app' ? 'app' : 'token';
}
