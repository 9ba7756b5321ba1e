/** The demo. Everything in it is real: listeners on loopback, signed tokens, the store on disk. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sandboxProfile } from '../broker/admin/organisations/demo.ts';
import { verifyReceipt } from '../broker/audit/verify-receipt.ts';
import { readConfig } from '../broker/environment/config.ts';
import { firstStart } from '../broker/process/first-start.ts';
import { serve } from '../broker/process/main.ts';
import { settleSandbox, startSandboxPlatform } from '../broker/process/sandbox.ts';
import type { Approval } from '../mcp/client/approval.ts';
import { type AgentClient, type CallOutcome, connectAgent } from '../mcp/client/connect-agent.ts';
import { readProfile } from '../mcp/profile.ts';
import { connectAsOwner, connectLocally } from './connection.ts';
import { CommandFailed } from './failure.ts';
import { PROGRAM } from './program-name.ts';
import { askLine } from './terminal/prompt.ts';

/** `asks`: a person is asked to approve, otherwise the demo approves. `tell` is called with one or more lines at a time. */
type DemoOutput = { tell(text: string): void; asks: boolean; stop?: AbortSignal | undefined };
type Story = { seconds: number; steps: Record<string, unknown>[] };

/** How long a person has to decide. */
const MAX_WAIT_SECONDS = 900;

/**
 * Runs broker, platform and agent in `folder` (the caller removes it), and returns each step as a value. Throws CommandFailed when a
 * step does not do what it must.
 */
export async function runDemo(folder: string, telling: DemoOutput): Promise<Story> {
  const started = performance.now();
  const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: folder });
  const sandbox = await startSandboxPlatform(folder);
  try {
    const running = await serve(config, {
      allowPrivate: [new URL(sandbox.url).host],
      beforeServing: async (services) => {
        await settleSandbox(services, await firstStart(services), sandbox);
      },
    });
    try {
      const steps = await tellStory(folder, running.baseUrl, telling);
      const seconds = Number(((performance.now() - started) / 1000).toFixed(1));
      telling.tell(`\nThat took ${seconds} s. Next: ${PROGRAM} serve`);
      return { seconds, steps };
    } finally {
      await running.stop();
    }
  } finally {
    await sandbox.close();
  }
}

async function tellStory(folder: string, url: string, telling: DemoOutput): Promise<Story['steps']> {
  const { tell } = telling;
  const profile = readProfile({}, sandboxProfile(folder));
  const agent = connectAgent({ ...profile, url });
  const credential = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8')).token as string;
  tell(`A broker at ${url}, and a platform behind it with issues, mail and refunds.`);
  tell(`The agent ${profile.agentId} holds its own RSA key. It never sees the platform's credential.`);

  tell('\n1. It reads the open issues.');
  const read = await agent.call({
    platform: 'sandbox',
    endpoint: '/issues',
    method: 'GET',
    scope: 'sandbox:issues.read',
  });
  if (read.kind !== 'answered' || read.upstreamStatus !== 200) throw wentWrong('the read was not answered', read);
  if (JSON.stringify(read).includes(credential)) throw wentWrong('the credential was in the answer');
  const { items = [] } = read.data as { items?: { title?: string }[] };
  tell(`   200: ${items.length} issues, the first is “${items[0]?.title}”. The broker added the credential.`);

  tell('\n2. It tries to change one, with only the scope for reading.');
  const refused = await agent.call({
    platform: 'sandbox',
    endpoint: '/issues/1',
    method: 'PATCH',
    scope: 'sandbox:issues.read',
    data: { state: 'closed' },
  });
  if (refused.kind !== 'denied' || refused.reason !== 'endpoint_scope_mismatch')
    throw wentWrong('the change was not refused', refused);
  tell(`   403 ${refused.reason}: ${refused.detail}`);

  tell('\n3. It asks for a refund.');
  const held = await agent.call({
    platform: 'sandbox',
    endpoint: '/refunds',
    method: 'POST',
    scope: 'sandbox:refunds.create',
    data: { payment: 'pay_1001', amount: 500, currency: 'EUR', reason: 'arrived broken' },
    reason: 'The customer sent a photo of the broken cup.',
  });
  if (held.kind !== 'held') throw wentWrong('the refund was not held', held);
  tell(`   202: nothing was sent. It waits for a person as approval ${held.approvalId}.`);

  tell('\n4. A person decides.');
  const decided = await decide(folder, agent, held.approvalId, telling);
  tell(`   ${becameOf(decided)}`);

  tell('\n5. Every decision has a signed receipt.');
  const keys = await (await fetch(`${url}/.well-known/svc-receipt-keys.json`)).text();
  const auditId = decided.state === 'done' ? decided.auditId : undefined;
  const receipts = [
    await receiptOf(agent, keys, 'the refusal', refused.auditId, tell),
    ...(auditId === undefined ? [] : [await receiptOf(agent, keys, 'the refund', auditId, tell)]),
  ];
  return [{ read }, { refused }, { held }, { decided }, ...receipts];
}

/** Waits for a person, or approves. Returns the approval when it is final, or when the time to decide has passed. */
async function decide(
  folder: string,
  agent: AgentClient,
  approvalId: string,
  { tell, asks, stop }: DemoOutput,
): Promise<Approval> {
  const approve = async () => {
    const owner = await connectAsOwner({ data: folder });
    await owner.ask('POST', `/owner/approvals/${approvalId}/approve`, {});
  };
  if (!asks) {
    tell('   No answer can be read here, so the demo approves it with the session of the owner.');
    await approve();
    return await settled(agent, approvalId);
  }
  const { url: link } = await (await connectLocally({ data: folder })).ask('POST', '/owner/link', {});
  tell(`   Open this link and press Approve or Deny:\n\n   ${link}\n`);
  const asking = new AbortController();
  askLine('   Or press Enter to approve it here.\n', asking.signal)
    .then((typed) => (typed === undefined ? undefined : approve()))
    .catch((error: Error) => tell(`   ${error.message}`));
  try {
    return await settled(agent, approvalId, stop);
  } finally {
    asking.abort();
  }
}

async function settled(agent: AgentClient, approvalId: string, signal?: AbortSignal): Promise<Approval> {
  const options = { timeoutSeconds: MAX_WAIT_SECONDS, ...(signal && { signal }) };
  const found = await agent.settled(approvalId, options).catch((error: Error) => {
    throw signal?.aborted ? new CommandFailed('Stopped. The refund was not decided, and the demo is removed.') : error;
  });
  if (!found.ok) throw wentWrong(`the approval could not be read: ${found.error.message}`);
  return found.value;
}

function becameOf(approval: Approval): string {
  switch (approval.state) {
    case 'done':
      return `Approved. The broker checked every rule again and made the call once: ${JSON.stringify(approval.result.data)}`;
    case 'denied':
      return `Denied${approval.note ? ` (“${approval.note}”)` : ''}. The refund is never made.`;
    case 'not_made':
      throw wentWrong(`the approved refund was not made: ${approval.error}`);
    default:
      return 'Nobody decided. The refund is not made.';
  }
}

async function receiptOf(
  agent: AgentClient,
  keys: string,
  what: string,
  auditId: string | undefined,
  tell: DemoOutput['tell'],
): Promise<Record<string, unknown>> {
  const fetched = await agent.receipt(String(auditId));
  if (!fetched.ok) throw wentWrong(`the receipt of ${what} could not be read: ${fetched.error.message}`);
  const verified = verifyReceipt(fetched.value.receipt, keys);
  if (!verified.ok) throw wentWrong(`the receipt of ${what} does not verify: ${verified.error}`);
  const { kid, payload } = verified;
  const approval = payload.approval as { decided_at?: string; how?: string } | undefined;
  const decided = approval ? `, decided at ${approval.decided_at} (${approval.how})` : '';
  tell(
    `   Of ${what}, signed by key ${kid}: ${payload.result} ${payload.method} ${payload.path}, reason ${payload.reason}${decided}.`,
  );
  return { receipt: payload, kid };
}

function wentWrong(what: string, outcome?: CallOutcome): CommandFailed {
  const found = outcome ? ` (${outcome.kind === 'failed' ? outcome.error.message : outcome.kind})` : '';
  return new CommandFailed(`The demo failed: ${what}${found}. Please report it with the version of agent-broker.`);
}
