/** `agent-broker request-consent`: an agent starts the consent of a person, before its first call for that person. */
import { visible } from '../broker/console/static/visible.js';
import { CallerProblem } from '../mcp/caller-problem.ts';
import type { AgentClient } from '../mcp/client/agent-client.ts';
import { connectAgent } from '../mcp/client/connect-agent.ts';
import { AgentKeyError } from '../mcp/client/signer.ts';
import { type CallerOptions, configuredCaller } from '../mcp/configured-caller.ts';
import { ProfileError, readProfile } from '../mcp/profile.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { polled, unwrap } from './request-access.ts';
import { localTime } from './terminal/local-time.ts';
import { printJson } from './terminal/output.ts';

export type ConsentOptions = CallerOptions & { connection?: string; wait: number; profile?: string; json?: boolean };

/**
 * Prints the link, and waits for the person as long as the options say. The exit code is 1 if the person has not consented by then.
 *
 * @throws WrongUsage without a caller; CommandFailed when nobody could consent, or the broker does not answer
 */
export async function requestConsent(platform: string, options: ConsentOptions): Promise<void> {
  const { connection, wait, json } = options;
  try {
    const caller = configuredCaller(options, process.env)?.();
    if (!caller) throw new WrongUsage('Name the person with --caller SOURCE:ID, or with --caller-file FILE.');
    const client = connectAgent(readProfile(process.env, options.profile));
    const id = connection === undefined ? undefined : await connectionOf(client, platform, connection);
    const asked = { platform, caller, ...(id !== undefined && { connection_id: id }) };
    const { consentUrl, consentToken, expiresAt } = unwrap(await client.startConsent(asked));
    if (!json)
      process.stdout.write(visible(`Open this as the person, until ${localTime(expiresAt)}:\n${consentUrl}\n`));
    if (wait === 0 && !json) return;
    const { status } = await polled((waitSeconds) => client.consent(consentToken, { waitSeconds }), wait);
    if (json) printJson({ status, consent_url: consentUrl, expires_at: expiresAt });
    else process.stdout.write(`${WHAT_NOW[status]}\n`);
    if (wait > 0 && status !== 'completed') process.exitCode = 1;
  } catch (error) {
    if (error instanceof CallerProblem) throw new WrongUsage(error.message);
    if (error instanceof ProfileError || error instanceof AgentKeyError) throw new CommandFailed(error.message);
    throw error;
  }
}

const WHAT_NOW = {
  completed:
    'The person has consented. Where nobody vouches for the person, an owner has to confirm the account before calls use it.',
  pending: 'The person has not consented yet. The same command again returns the same link and waits for it.',
  expired: 'The link has expired. Run the command again for a new one.',
};

async function connectionOf(client: AgentClient, platform: string, label: string): Promise<string> {
  const { permissions } = unwrap(await client.permissions());
  const { platforms } = permissions;
  const used = platforms.find(({ platformId }) => platformId === platform);
  if (!used)
    throw new CommandFailed(
      `This agent may use nothing on a platform "${platform}". Its platforms: ${platforms.map(({ platformId }) => platformId).join(', ') || 'none'}.`,
    );
  const there = used.connections ?? [];
  const found = there.find((one) => one.label === label);
  if (found) return found.connection_id;
  const labels = there.flatMap((one) => one.label ?? []).join(', ') || 'none';
  throw new CommandFailed(
    `This agent has no grant on a connection ${label} of ${platform}. Its connections there: ${labels}.`,
  );
}
