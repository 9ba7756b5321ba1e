/** `npm run build`: plain JavaScript in dist/, because Node strips no types under node_modules, and what build it is. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
// The second: types of what others import, which is the client alone.
for (const project of ['tsconfig.build.json', 'tsconfig.client.json']) {
  const compiled = spawnSync('tsc', ['-p', project], { stdio: 'inherit', shell: process.platform === 'win32' });
  if (compiled.status !== 0) process.exit(compiled.status ?? 1);
}

// The console's pages are files, not modules.
cpSync('broker/console/static', 'dist/broker/console/static', { recursive: true });
cpSync('broker/docs/static', 'dist/broker/docs/static', { recursive: true });
// The reference's renderer is shipped and not depended on: what it depends on reports installations to its maker.
for (const file of ['swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'swagger-ui.css', 'LICENSE', 'NOTICE'])
  cpSync(`node_modules/swagger-ui-dist/${file}`, `dist/broker/docs/vendor/${file}`);

const git = (...words: string[]): string | undefined => {
  try {
    return execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
};
const info = { sha: git('rev-parse', 'HEAD') ?? 'unknown', builtAt: new Date().toISOString() };
writeFileSync('dist/build-info.json', `${JSON.stringify(info)}\n`);
