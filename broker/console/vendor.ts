/** The libraries that the pages import, read from the packages that npm installed: nothing is built and nothing is copied. */
import { readFileSync } from 'node:fs';

export type Vendored = { path: string; text: string };

const PREFIX = '/console/vendor';
/** What the pages use of @simplewebauthn/browser, whose only single file sets a global. */
const PASSKEY_NAMES = [
  'browserSupportsWebAuthn',
  'platformAuthenticatorIsAvailable',
  'startAuthentication',
  'startRegistration',
  'WebAuthnAbortService',
  'WebAuthnError',
];

/** All of them, as modules that a browser can import by path. Throws when a package is not what it was. */
export function vendored(): Vendored[] {
  return [
    { path: `${PREFIX}/preact.js`, text: read('preact') },
    { path: `${PREFIX}/preact-hooks.js`, text: withPreactByPath(read('preact/hooks')) },
    { path: `${PREFIX}/htm.js`, text: read('htm') },
    { path: `${PREFIX}/simplewebauthn-browser.js`, text: asModule(readPasskeyBundle()) },
  ];
}

/** Without the reference to a source map, which is not served. */
const readText = (url: string | URL): string =>
  readFileSync(new URL(url), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');

const read = (specifier: string): string => readText(import.meta.resolve(specifier));

const readPasskeyBundle = (): string =>
  readText(new URL('../dist/bundle/index.umd.min.js', import.meta.resolve('@simplewebauthn/browser')));

/** A browser knows no bare names without an import map, which would have to be inline. */
function withPreactByPath(text: string): string {
  const rewritten = text.replaceAll(/from\s*"preact"/g, `from"${PREFIX}/preact.js"`);
  if (rewritten === text || /from\s*"(?!\/)/.test(rewritten))
    throw new Error('preact/hooks does not import preact as it did: see broker/console/vendor.ts.');
  return rewritten;
}

function asModule(bundle: string): string {
  const gone = PASSKEY_NAMES.filter((name) => !bundle.includes(`.${name}=`));
  if (gone.length > 0) throw new Error(`@simplewebauthn/browser no longer has ${gone.join(', ')}.`);
  return `${bundle}\nexport const { ${PASSKEY_NAMES.join(', ')} } = globalThis.SimpleWebAuthnBrowser;\n`;
}
