#!/usr/bin/env node
// The launcher: plain JavaScript, so that an old Node can run it and report the required version.
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NEEDED = 24;
const at = (path) => fileURLToPath(new URL(path, import.meta.url));
// A checkout runs from source; the published package has JavaScript only.
const source = existsSync(at('./cli.ts'));

if (Number(process.versions.node.split('.')[0]) >= NEEDED) {
  try {
    await run();
  } catch (error) {
    // The packages of a checkout come with `npm ci`; a missing file of the checkout itself is reported as it is.
    if (!source || error?.code !== 'ERR_MODULE_NOT_FOUND' || !/^Cannot find package/.test(error.message)) throw error;
    failInstall();
  }
} else {
  // A checkout brings its own Node as a devDependency.
  const own = at('../node_modules/node/bin/node');
  if (existsSync(own)) {
    const child = spawn(own, process.argv.slice(1), { stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'])
      process.on(signal, () => {
        // A terminal sends these signals to both processes, and a second SIGINT would end a server that is draining.
        const isSentToBoth = ['SIGINT', 'SIGQUIT'].includes(signal) && process.stdin.isTTY;
        if (!isSentToBoth) child.kill(signal);
      });
    child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)));
  } else if (source) failInstall();
  else {
    console.error(`agent-broker needs Node.js ${NEEDED} or newer; this is ${process.version}.`);
    console.error(
      'Install a newer one from https://nodejs.org, or run it with: npx --package=node@24 --package=agent-broker agent-broker',
    );
    process.exitCode = 1;
  }
}

function failInstall() {
  console.error(`Run "npm ci" in ${at('..')} first: it installs Node.js ${NEEDED} and the packages that this needs.`);
  process.exitCode = 1;
}

async function run() {
  keepMemory();
  const isServed = process.argv[2] === 'mcp' && (await quickly(process.argv.slice(3)));
  if (!isServed) {
    // A checkout loads a thousand files and strips the types of each. The published package has a few, for which a cache only costs memory.
    if (source) keepCompiled();
    // Loading takes a while, and as PID 1 of a container a signal without a handler is ignored.
    const stop = ['serve', 'demo'].includes(process.argv[2]) ? listenForStop() : undefined;
    outliveReaders();
    const { main } = await import(source ? './cli.ts' : '../dist/cli.js');
    await main(process.argv, stop);
  }
}

/** An AbortSignal, aborted at the first SIGTERM or SIGINT with its name. The second exits immediately. */
function listenForStop() {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'])
    process.on(name, () => {
      // Calls in flight are recorded as unknown at the next start.
      if (stop.signal.aborted) process.exit(1);
      stop.abort(name);
    });
  return stop.signal;
}

/**
 * Continues when the reader of the output ends first, as `head` or a restarted log reader does; the exit code still reports the result of the
 * command. Node would otherwise exit at the next write. Any other write error, such as a full disk, makes the command fail.
 */
function outliveReaders() {
  process.stderr.on('error', () => {});
  let isTold = false;
  process.stdout.on('error', (error) => {
    if (error.code === 'EPIPE') return;
    process.exitCode = 1;
    if (!isTold) process.stderr.write(`The output cannot be written: ${error.message}.\n`);
    isTold = true;
  });
}

/**
 * Protects the memory of this process, which holds keys in every command. Disables the inspector, which Node opens to every program of this machine
 * at SIGUSR1, and diagnostic reports, also where NODE_OPTIONS requests them; and excludes all memory from core dumps (Linux, core(5): no
 * kind of mapping is dumped). Preventing the core file itself is up to the operator (RLIMIT_CORE): what remains in it is registers only.
 */
function keepMemory() {
  process.on('SIGUSR1', () => {});
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // Not Linux, or /proc is not writable.
  }
}

/** Fast path of `agent-broker mcp`, which a client starts with every session and whose tools it waits for. */
async function quickly(words) {
  keepCompiled();
  const { quickMcp } = await import(source ? './quick-mcp.ts' : '../dist/quick-mcp.js');
  return await quickMcp(words);
}

/**
 * Enables the compile cache for commands that are started often while somebody waits. Not in the temporary folder, which is
 * Node's default: other users of the machine could inject code there.
 */
function keepCompiled() {
  try {
    module.enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'agent-broker'));
  } catch {
    // Without a home folder there is no cache.
  }
}
