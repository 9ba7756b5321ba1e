/**
 * `npm run build`, or `node build.ts FOLDER`: plain JavaScript in dist/, because Node strips no types under node_modules; what
 * is used of large packages, as one file each; and what build it is.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';

const OUT = process.argv[2] ?? 'dist';
rmSync(OUT, { recursive: true, force: true });
// The second: types of what others import, which is the client alone.
for (const project of ['tsconfig.build.json', 'tsconfig.client.json']) {
  const words = ['-p', project, '--outDir', OUT];
  const compiled = spawnSync(join('node_modules', '.bin', 'tsc'), words, {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (compiled.status !== 0) process.exit(compiled.status ?? 1);
}

// The console's pages are files, not modules.
cpSync('broker/console/static', join(OUT, 'broker/console/static'), { recursive: true });
cpSync('broker/docs/static', join(OUT, 'broker/docs/static'), { recursive: true });
// The reference's renderer is shipped and not depended on: what it depends on reports installations to its maker.
for (const file of ['swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'swagger-ui.css', 'LICENSE', 'NOTICE'])
  cpSync(`node_modules/swagger-ui-dist/${file}`, join(OUT, 'broker/docs/vendor', file));

writeFileSync(join(OUT, 'bundled', 'LICENSES.txt'), licences(await bundle()));

const git = (...words: string[]): string | undefined => {
  try {
    return execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
};
const info = { sha: git('rev-parse', 'HEAD') ?? 'unknown', builtAt: new Date().toISOString() };
writeFileSync(join(OUT, 'build-info.json'), `${JSON.stringify(info)}\n`);

/** Writes what bundled/ names over what tsc made of it, whole but for dependencies of the package. Answers the files in it. */
async function bundle(): Promise<string[]> {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> };
  const names = Object.keys(dependencies);
  const bundling = await rolldown({
    input: readdirSync('bundled').map((file) => join('bundled', file)),
    platform: 'node',
    external: (id) => names.some((name) => id === name || id.startsWith(`${name}/`)),
  });
  const { output } = await bundling.write({ dir: join(OUT, 'bundled'), chunkFileNames: 'shared-[hash].js' });
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
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
