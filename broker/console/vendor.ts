/** The libraries that the pages import, read from the packages that npm installed, without a build step or copies. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `text` reads the file on request. Throws when a package's file has unexpected contents. */
export type Vendored = { path: string; text: () => string };

const PREFIX = '/console/vendor';
/** The exports of @simplewebauthn/browser that the pages use; its only single-file build sets a global. */
const PASSKEY_NAMES = [
  'browserSupportsWebAuthn',
  'platformAuthenticatorIsAvailable',
  'startAuthentication',
  'startRegistration',
  'WebAuthnAbortService',
  'WebAuthnError',
];

/** Returns all libraries, as modules that a browser can import by path. */
export function vendored(): Vendored[] {
  return [
    { path: `${PREFIX}/preact.js`, text: () => read('preact') },
    { path: `${PREFIX}/preact-hooks.js`, text: () => withPreactByPath(read('preact/hooks')) },
    { path: `${PREFIX}/htm.js`, text: () => read('htm') },
    { path: `${PREFIX}/uplot.js`, text: () => uplotAsModule(readUplot('uPlot.iife.min.js')) },
    { path: `${PREFIX}/uplot.css`, text: () => readUplot('uPlot.min.css') },
    { path: `${PREFIX}/simplewebauthn-browser.js`, text: () => asModule(readPasskeyBundle()) },
    ...yamlModules(),
  ];
}

/** Reads a file without its reference to a source map, which is not served. */
const readText = (url: string | URL): string =>
  readFileSync(new URL(url), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');

const read = (specifier: string): string => readText(import.meta.resolve(specifier));

const readPasskeyBundle = (): string =>
  readText(new URL('../dist/bundle/index.umd.min.js', import.meta.resolve('@simplewebauthn/browser')));

/** Reads uplot's script, which sets a variable: its single-file module is three times as long. */
const readUplot = (file: string): string => readText(new URL(file, import.meta.resolve('uplot')));

function uplotAsModule(script: string): string {
  if (!script.includes('var uPlot='))
    throw new Error('uplot does not set uPlot as it did: see broker/console/vendor.ts.');
  return `${script}\nexport default uPlot;\n`;
}

/** Rewrites bare imports of preact to paths: a browser resolves bare names only with an import map, which would have to be inline. */
function withPreactByPath(text: string): string {
  const rewritten = text.replaceAll(/from\s*"preact"/g, `from"${PREFIX}/preact.js"`);
  if (rewritten === text || /from\s*"(?!\/)/.test(rewritten))
    throw new Error('preact/hooks does not import preact as it did: see broker/console/vendor.ts.');
  return rewritten;
}

/** Returns the browser modules of yaml, which import each other by relative paths. Pages load them on demand. */
function yamlModules(): Vendored[] {
  // The build copies them beside the compiled files; a checkout uses those from npm.
  const built = fileURLToPath(new URL('vendor/yaml/', import.meta.url));
  const folder = existsSync(built)
    ? built
    : fileURLToPath(new URL('browser/dist/', import.meta.resolve('yaml/package.json')));
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({
      path: `${PREFIX}/yaml/${relative(folder, file).replaceAll(sep, '/')}`,
      text: () => readFileSync(file, 'utf8'),
    }));
}

function asModule(bundle: string): string {
  const gone = PASSKEY_NAMES.filter((name) => !bundle.includes(`.${name}=`));
  if (gone.length > 0) throw new Error(`@simplewebauthn/browser no longer has ${gone.join(', ')}.`);
  return `${bundle}\nexport const { ${PASSKEY_NAMES.join(', ')} } = globalThis.SimpleWebAuthnBrowser;\n`;
}
