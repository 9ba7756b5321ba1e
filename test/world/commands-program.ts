/**
 * Runs commands of the command line one after the other in one process, each with an environment, a folder, an input and an output of its own,
 * because a process for each takes ten times as long as most commands themselves. Started by `command.ts`; the first argument is the built command
 * line.
 */
import { PassThrough, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

export type HostedCommand = {
  words: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  input: string;
};
export type HostedOutcome = { code: number; stdout: string; stderr: string };

const { main } = (await import(pathToFileURL(process.argv[2]!).href)) as {
  main(argv: readonly string[]): Promise<void>;
};

async function perform({ words, cwd, env, input }: HostedCommand): Promise<HostedOutcome> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  const stdout = outputAs('stdout');
  const stderr = outputAs('stderr');
  const stdin = new PassThrough();
  stdin.end(input);
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  process.exitCode = undefined;
  const atRest = process.getActiveResourcesInfo().length;
  await main([process.execPath, 'agent-broker', ...words]);
  // The command ends when no work is left, as a process does.
  while (process.getActiveResourcesInfo().length > atRest) await new Promise((later) => setTimeout(later, 2).unref());
  return { code: Number(process.exitCode ?? 0), stdout: stdout(), stderr: stderr() };
}

/** Captures the output from now on. Returns a function that returns all of it. */
function outputAs(name: 'stdout' | 'stderr'): () => string {
  const chunks: Buffer[] = [];
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  Object.defineProperty(process, name, { value: output, configurable: true });
  return () => Buffer.concat(chunks).toString();
}

let last: Promise<unknown> = Promise.resolve();
process.on('message', (command: HostedCommand) => {
  last = last.then(async () => process.send!(await perform(command)));
});
