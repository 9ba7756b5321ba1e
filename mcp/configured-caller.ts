/** Reads the caller of `agent-broker mcp` and `agent-broker run` (the person for whom the agent calls) from options and environment. */
import { readFileSync } from 'node:fs';
import { CallerProblem } from './caller-problem.ts';
import type { Caller } from './client/action.ts';
import { othersCanRead } from './profile.ts';

/** `caller`: `<source>:<id>`. `callerFile`: path of a file with an assertion. An assertion is a secret, and so is never an option itself. */
export type CallerOptions = { caller?: string | undefined; callerFile?: string | undefined };

/** The longest assertion that the broker accepts, in characters (broker/wire/action.ts). */
const MAX_ASSERTION_LENGTH = 8192;

/**
 * Options take the place of AGENT_BROKER_CALLER and AGENT_BROKER_CALLER_FILE. Returns undefined when no caller is configured. The returned
 * function reads the file each time, because assertions live an hour at most, and throws CallerProblem.
 *
 * @throws CallerProblem when the settings are wrong
 */
export function configuredCaller(
  options: CallerOptions,
  environment: Readonly<Record<string, string | undefined>>,
): (() => Caller) | undefined {
  const isOption = options.caller !== undefined || options.callerFile !== undefined;
  const caller = isOption ? options.caller : environment.AGENT_BROKER_CALLER || undefined;
  const file = isOption ? options.callerFile : environment.AGENT_BROKER_CALLER_FILE || undefined;
  const [name, fileName] = isOption
    ? ['--caller', '--caller-file']
    : ['AGENT_BROKER_CALLER', 'AGENT_BROKER_CALLER_FILE'];
  if (caller !== undefined && file !== undefined)
    throw new CallerProblem(`${name} and ${fileName} name a caller each: leave one of them out.`);
  if (file !== undefined) return () => readAssertion(file);
  if (caller === undefined) return undefined;
  const asserted = readAsserted(caller);
  if (!asserted)
    throw new CallerProblem(
      `${name}: write <source>:<id>, such as slack:U024BE7LH. An assertion is a secret: write it to a file, and name that with ${fileName}.`,
    );
  return () => asserted;
}

/**
 * Returns a function that makes the value of `X-Svc-Caller` for the configured caller, each time it is called.
 *
 * @throws CallerProblem when the caller's name cannot stand in a header; the returned function throws it, too
 */
export function callerHeader(
  ...[options, environment]: Parameters<typeof configuredCaller>
): (() => string) | undefined {
  const configured = configuredCaller(options, environment);
  if (configured === undefined) return undefined;
  const value = (): string => {
    const caller = configured();
    if ('assertion' in caller) return `jwt ${caller.assertion}`;
    // Node writes Latin-1, and the broker reads UTF-8.
    return Buffer.from(`id ${caller.source}:${caller.id}`).toString('latin1');
  };
  const isAsserted = options.caller ?? (options.callerFile === undefined && environment.AGENT_BROKER_CALLER);
  if (isAsserted && /[\x00-\x1f\x7f]/.test(value()))
    throw new CallerProblem('The caller has a control character, which no header can hold.');
  return value;
}

/** Split at the first colon, as in `X-Svc-Caller`. */
function readAsserted(text: string): Caller | undefined {
  const [, source, id] = /^([a-z0-9][a-z0-9_.-]{0,31}):(.{1,256})$/su.exec(text) ?? [];
  return source === undefined || id === undefined ? undefined : { source, id };
}

/** Reads and checks the assertion. Error messages never contain anything of the file's content. */
function readAssertion(file: string): Caller {
  let assertion: string;
  try {
    if (othersCanRead(file))
      throw new CallerProblem(
        `Others can read ${file}, which holds an assertion about a person. Run: chmod 600 ${file}`,
      );
    assertion = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error instanceof CallerProblem) throw error;
    throw new CallerProblem(`The assertion ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  if (assertion.length > MAX_ASSERTION_LENGTH || !/^[\w-]+\.[\w-]+\.[\w-]*$/.test(assertion))
    throw new CallerProblem(`The file ${file} holds no assertion: it has to be one JWT, and nothing else.`);
  return { assertion };
}
