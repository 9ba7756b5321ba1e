/** `agent-broker request-access`: an agent, or a command of `agent-broker run`, requests access that it was refused. */
import { visible } from '../broker/console/static/visible.js';
import { type AgentClient, type AccessAsk as Asked, agentClient } from '../mcp/client/agent-client.ts';
import { connectAgent } from '../mcp/client/connect-agent.ts';
import { pollUntil } from '../mcp/client/poll-until.ts';
import type { AccessRequest, AccessStatus, Answer } from '../mcp/client/read-answers.ts';
import { signedSend } from '../mcp/client/signed-send.ts';
import { AgentKeyError } from '../mcp/client/signer.ts';
import { ProfileError, readProfile } from '../mcp/profile.ts';
import { holds } from '../mcp/tools/access.ts';
import { CommandFailed } from './failure.ts';
import { printJson } from './terminal/output.ts';

export type RequestOptions = { reason?: string; wait: number; profile?: string; json?: boolean };

/** `granted`: access exists already, or an owner granted it; `other`: an owner granted something else. */
type AccessAnswer = {
  status: 'granted' | 'other' | Exclude<AccessStatus['status'], 'approved'>;
  detail: string;
  note?: string | undefined;
  /** The token of the request; undefined when there was nothing to request. */
  requestToken?: string;
};

/**
 * Requests access, and waits for the decision as long as the options say. The exit code is 0 when the scope can be used now, otherwise 1.
 *
 * @throws CommandFailed when no owner could grant it, or the broker does not answer
 */
export async function requestAccess(
  asked: { platform: string; scope: string | undefined },
  { reason, wait, profile, json }: RequestOptions,
): Promise<void> {
  const { platform, scope } = asked;
  const wanted = { platform, ...(scope !== undefined && { scope }), ...(reason !== undefined && { reason }) };
  const run = profile === undefined ? runOf(process.env) : undefined;
  try {
    const client = run ? agentClient(signedSend(run)) : connectAgent(readProfile(process.env, profile));
    const { status, detail, note, requestToken } = await ask(client, wanted, { wait, isRun: run !== undefined });
    if (json) printJson({ status, detail, note, request_token: requestToken });
    else process.stdout.write(`${visible(note === undefined ? detail : `${detail} They wrote: ${note}`)}\n`);
    if (status !== 'granted') process.exitCode = 1;
  } catch (error) {
    if (error instanceof ProfileError || error instanceof AgentKeyError) throw new CommandFailed(error.message);
    throw error;
  }
}

/** The run that this process belongs to: its sidecar signs requests with the run's placeholder. */
function runOf({ AGENT_BROKER_RUN_URL: url, AGENT_BROKER_RUN_KEY: key }: NodeJS.ProcessEnv) {
  return url && key ? { url, token: () => key } : undefined;
}

async function ask(
  client: AgentClient,
  asked: Asked,
  { wait, isRun }: { wait: number; isRun: boolean },
): Promise<AccessAnswer> {
  const what = asked.scope === undefined ? asked.platform : `${asked.scope} on ${asked.platform}`;
  const opened = await client.requestAccess(asked);
  // Without a scope the broker itself chooses the missing one.
  if (!opened.ok && opened.error.code === 'conflict' && asked.scope !== undefined)
    return { status: 'granted', detail: opened.error.message };
  const { requestToken } = unwrap<AccessRequest>(opened);
  if (wait > 0) process.stderr.write(visible(`The owners are asked for ${what}: waiting ${wait} seconds at most.\n`));
  const { status, note } = await polled<AccessStatus>(
    (waitSeconds) => client.accessRequest(requestToken, { waitSeconds }),
    wait,
  );
  if (status !== 'approved') return { status, note, requestToken, detail: undecided(status, what) };
  // A run serves only the connections that existed when it began.
  const next = `Make the call again${isRun ? '; if its connection is new, start the run again' : ''}.`;
  const { permissions } = unwrap(await client.permissions());
  return holds(permissions, asked)
    ? { status: 'granted', note, requestToken, detail: `An owner granted ${what}. ${next}` }
    : {
        status: 'other',
        note,
        requestToken,
        detail: `An owner approved the request, and granted other scopes than ${what}.`,
      };
}

/**
 * Asks in long polls until it is not pending any more, for `wait` seconds at most, also while the broker is restarted. Returns the last answer.
 * @throws CommandFailed
 */
export async function polled<Found extends { status: string }>(
  poll: (waitSeconds: number) => Promise<Answer<Found>>,
  wait: number,
): Promise<Found> {
  return unwrap(await pollUntil(poll, ({ status }) => status !== 'pending', { endsAt: Date.now() + wait * 1000 }));
}

function undecided(status: 'pending' | 'denied' | 'expired', what: string): string {
  switch (status) {
    case 'pending':
      return `The owners were asked for ${what}, and have not decided yet. The same command again waits for the same request.`;
    case 'denied':
      return `An owner denied ${what}. Do not ask for it again.`;
    case 'expired':
      return `Nobody decided on ${what} in time.`;
  }
}

/** @throws CommandFailed with the broker's error */
export function unwrap<T>(answer: Answer<T>): T {
  if (answer.ok) return answer.value;
  throw new CommandFailed(answer.error.message);
}
