/**
 * `node build-console.ts FOLDER`: the console's pages as the package has them: the modules of a page in one file, beside one for each part that
 * is loaded when it is needed, its styles in another, and the addresses of the sources. Nothing is minified (docs/decisions/06-console-bundle.md).
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { BUNDLE_PATH, readSources, SOURCES_LIST } from './broker/console/pages.ts';
import { withPreloads } from './broker/console/preload.ts';

const SCRIPT = /(<script type="module" src=")([^"]+)(">)/;
const STYLES = /(?:[ \t]*<link rel="stylesheet" href="[^"]+">\n)+/;
const STYLE = /<link rel="stylesheet" href="([^"]+)">/g;

if (import.meta.main) {
  const [, , folder] = process.argv;
  if (folder === undefined) throw new Error('Name the folder to write to: node build-console.ts FOLDER');
  await writeConsole(folder);
}

/** Writes `<page>.html`, `.js` and `.css`, what they share, and the list of the sources into this folder. */
async function writeConsole(folder: string): Promise<void> {
  const { files, pages } = readSources();
  const texts = new Map(files.map(({ path, read }) => [path, read().toString('utf8')]));
  const textOf = (path: string): string => {
    const text = texts.get(path);
    if (text === undefined) throw new Error(`The console loads ${path}, which is not there.`);
    return text;
  };
  /** Modules have the path at which they are served, and import others by such a path, or one that is relative to it. */
  const byPath: Plugin = {
    name: 'console-modules',
    resolveId: (id, importer) => (importer === undefined ? id : new URL(id, `http://console${importer}`).pathname),
    load: (path) => textOf(path),
  };
  const bundling = await rolldown({
    input: Object.fromEntries(pages.map(({ name, html }) => [name, SCRIPT.exec(html)?.[2] ?? ''])),
    platform: 'browser',
    plugins: [byPath],
  });
  const { output } = await bundling.write({
    dir: folder,
    entryFileNames: '[name].js',
    chunkFileNames: 'part-[name].js',
    minify: false,
    comments: { legal: true, annotation: false, jsdoc: false },
  });
  const modules = new Map(
    output.flatMap((part) => (part.type === 'chunk' ? [[`${BUNDLE_PATH}/${part.fileName}`, part.code]] : [])),
  );
  for (const { name, html } of pages) {
    const [links = ''] = STYLES.exec(html) ?? [];
    const styles = [...links.matchAll(STYLE)].map(([, path = '']) => textOf(path));
    writeFileSync(join(folder, `${name}.css`), styles.join('\n'));
    const bundled = html
      .replace(SCRIPT, (_, before, _path, after) => `${before}${BUNDLE_PATH}/${name}.js${after}`)
      .replace(STYLES, `    <link rel="stylesheet" href="${BUNDLE_PATH}/${name}.css">\n`);
    if (bundled.match(STYLE)?.length !== 1) throw new Error(`${name}.html has styles in two places.`);
    writeFileSync(join(folder, `${name}.html`), withPreloads(bundled, modules));
  }
  writeFileSync(join(folder, SOURCES_LIST), `${JSON.stringify(files.map(({ path }) => path))}\n`);
}
