/**
 * `npm run build`, or `node build.ts FOLDER`: plain JavaScript in dist/, because Node strips no types under node_modules; and what
 * build it is. The sources, and what they use of packages, become a few files, which Node loads in half the time that one file for
 * each module takes. Packages in `dependencies` are files for browsers, and stay packages (docs/decisions/20-bundled-package.md).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { basename, join, relative } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

const ROOT = import.meta.dirname;
/**
 * What is loaded by its path. The command line; the threads, each at the path of its source, where the module that starts it
 * looks; and the client, which is all that others can import.
 */
const ENTRIES = {
  cli: 'bin/cli.ts',
  'quick-mcp': 'bin/quick-mcp.ts',
  'broker/audit/recording-thread': 'broker/audit/recording-thread.ts',
  'broker/config-file/parse-thread': 'broker/config-file/parse-thread.ts',
  'broker/egress/answers/answer-thread': 'broker/egress/answers/answer-thread.ts',
  'broker/egress/hash-thread': 'broker/egress/hash-thread.ts',
  'mcp/client/connect-agent': 'mcp/client/connect-agent.ts',
};

/** A module finds the files beside it by `import.meta.url`, also when it has become part of a file in another folder. */
const placesOfModules: Plugin = {
  name: 'places-of-modules',
  transform(code, id) {
    if (id.includes('node_modules') || !code.includes('import.meta.url')) return null;
    const place = `./${relative(ROOT, id).replaceAll('\\', '/').replace(/\.ts$/, '.js')}`;
    return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(place)}, import.meta.url).href`);
  },
  renderChunk(code, { fileName }) {
    const missing = /\brequire\((['"])\.[^'"]*\1\)/.exec(code);
    if (missing) this.error(`${fileName} has ${missing[0]}, which is not there when it is run.`);
    if (fileName.includes('/') && code.includes('import.meta.url'))
      this.error(`${fileName} is not at the root, where import.meta.url has to be.`);
    return null;
  },
};

/**
 * An `import` of a builtin reads all of its properties, getters too. Those of `node:http` load the fetch that comes with Node, which
 * takes 13 MB of memory and 40 ms. So what is bundled gets `node:http` in a way that reads nothing but the names themselves.
 */
const httpWithoutFetch: Plugin = {
  name: 'http-without-fetch',
  resolveId: (id, _importer, { kind }) =>
    kind === 'import-statement' && /^(node:)?http$/.test(id) ? VIRTUAL_HTTP : null,
  load(id) {
    if (id !== VIRTUAL_HTTP) return null;
    const names = Object.entries(Object.getOwnPropertyDescriptors(http)).flatMap(([name, { get }]) =>
      get ? [] : [name],
    );
    return `const http = process.getBuiltinModule('node:http');
      export default http;
      export const { ${names.join(', ')} } = http;`;
  },
};
const VIRTUAL_HTTP = '\0node-http';

/**
 * Node loads a file with any character beyond ASCII as two bytes for each, and keeps it in memory. What is run is escaped when it is
 * written; the licences that stay in comments lose their accents here.
 */
const asciiOnly: Plugin = {
  name: 'ascii-only',
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk') continue;
      chunk.code = chunk.code.replaceAll(/\/\*!.*?\*\//gs, (licence) =>
        licence.normalize('NFD').replaceAll(/[^\x20-\x7e\s]/g, ''),
      );
      const [found] = /[\u0080-\uffff]/.exec(chunk.code) ?? [];
      if (found) this.error(`${chunk.fileName} has "${found}", in a tagged template: write it as an escape.`);
    }
  },
};

if (import.meta.main) {
  const out = process.argv[2] ?? 'dist';
  rmSync(out, { recursive: true, force: true });
  // Types of what others import, which is the client alone.
  const compiled = spawnSync(join('node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.client.json', '--outDir', out], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (compiled.status !== 0) process.exit(compiled.status ?? 1);
  writeFileSync(join(out, 'LICENSES.txt'), licences(await writePrograms(out)));
  // An image is built without git, and by its commit's time, so that the same commit makes the same files.
  const { SOURCE_COMMIT, SOURCE_DATE_EPOCH } = process.env;
  const builtAt = SOURCE_DATE_EPOCH ? new Date(Number(SOURCE_DATE_EPOCH) * 1000) : new Date();
  const info = { sha: SOURCE_COMMIT || (git('rev-parse', 'HEAD') ?? 'unknown'), builtAt: builtAt.toISOString() };
  writeFileSync(join(out, 'build-info.json'), `${JSON.stringify(info)}\n`);
}

/**
 * Writes everything that is run, and the files that it reads. `more`: further entries, sources by the name of the file to write.
 * Answers the files that the JavaScript was made of.
 */
export async function writePrograms(out: string, more: Readonly<Record<string, string>> = {}): Promise<string[]> {
  // In a process of its own: it loads modules of the broker, which find packages by their names, as vitest's loader cannot.
  execFileSync(process.execPath, [join(ROOT, 'build-console.ts'), join(out, 'broker/console/bundle')]);
  // The console's pages are files, not modules.
  for (const pages of ['broker/console/static', 'broker/docs/static'])
    cpSync(join(ROOT, pages), join(out, pages), { recursive: true });
  // The reference's renderer is shipped and not depended on: what it depends on reports installations to its maker.
  for (const file of [
    'swagger-ui-bundle.js',
    'swagger-ui-bundle.js.LICENSE.txt',
    'swagger-ui.css',
    'LICENSE',
    'NOTICE',
  ])
    cpSync(join(ROOT, 'node_modules/swagger-ui-dist', file), join(out, 'broker/docs/vendor', file));
  // For the console, which loads them only where rules are written as text.
  cpSync(join(ROOT, 'node_modules/yaml/browser/dist'), join(out, 'broker/console/vendor/yaml'), { recursive: true });
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const names = Object.keys(dependencies);
  const bundling = await rolldown({
    cwd: ROOT,
    input: { ...ENTRIES, ...more },
    platform: 'node',
    // Its other form computes what it requires. Other packages are taken as Node takes them: that is what the tests ran on.
    resolve: { alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' } },
    external: (id) => names.some((name) => id === name || id.startsWith(`${name}/`)),
    plugins: [placesOfModules, httpWithoutFetch, asciiOnly],
    // A dependency of koa has one, for functions that it marks as deprecated.
    checks: { eval: false },
  });
  const { output } = await bundling.write({
    dir: out,
    chunkFileNames: '[name]-[hash].js',
    minify: { compress: false, mangle: false, codegen: { asciiOnly: true, removeWhitespace: false } },
    comments: { legal: true, annotation: false, jsdoc: false },
  });
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

/**
 * Lays a new folder out as the package is installed, with programs of the sources as they are now, for tests and the bench. What is
 * not built is linked. `more`: as `writePrograms` takes it.
 */
export async function writePackage(folder: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
  await writePrograms(join(folder, 'dist'), more);
  cpSync(join(ROOT, 'bin', 'agent-broker.js'), join(folder, 'bin', 'agent-broker.js'));
  for (const name of ['package.json', 'governance.schema.json', 'CHANGELOG.md', 'docs', 'node_modules'])
    symlinkSync(join(ROOT, name), join(folder, name));
}

function git(...words: string[]): string | undefined {
  try {
    return execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** The licences of the packages that these files are of, with their versions. */
function licences(files: readonly string[]): string {
  const packages = Map.groupBy(
    files.filter((file) => file.includes('node_modules')),
    packageFolder,
  );
  const parts = [...packages].map(([folder, own]) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const texts = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file));
    // Some packages have no file of their own, and say in their sources whose they are.
    const said = texts.length > 0 ? texts.map((file) => readFileSync(join(folder, file), 'utf8')) : copyrights(own);
    return `${name} ${version}: ${license}\n\n${said.map((text) => text.trim()).join('\n\n')}\n`;
  });
  return [
    `These files hold parts of the following packages. The text of the Apache-2.0 license is in LICENSE of this package.\n`,
    ...parts.sort(),
  ].join(`\n${'-'.repeat(80)}\n\n`);
}

function packageFolder(file: string): string {
  const [, folder = ''] = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(file.replaceAll('\\', '/')) ?? [];
  if (!existsSync(join(folder, 'package.json'))) throw new Error(`no package has the file ${basename(file)}`);
  return folder;
}

/** The different comments, at the beginning of these files, that name a holder of rights. */
function copyrights(files: readonly string[]): string[] {
  const heads = files.map((file) => /^(?:\/\/.*\n)+|^\/\*[\s\S]*?\*\//.exec(readFileSync(file, 'utf8'))?.[0] ?? '');
  const different = [...new Set(heads.filter((head) => /copyright/i.test(head)))];
  // Generated files add a line or two to the same text.
  return different.filter((head) => !different.some((other) => other !== head && head.startsWith(other)));
}
