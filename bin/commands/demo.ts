import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { CommandFailed } from '../failure.ts';

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('tell the whole story by itself, on a broker and a platform made for it and thrown away afterwards')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const folder = mkdtempSync(join(tmpdir(), 'agent-broker-demo-'));
      try {
        await tellStory(folder, options.json === true);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
}

type Answer = { status: number; body: Record<string, unknown> };

/** Everything in it is real: listeners on loopback, signed tokens, the store on disk. */
async function tellStory(folder: string, asJson: boolean): Promise<void> {
  const { readConfig } = await import('../../broker/config.ts');
  const { serve } = await import('../../broker/main.ts');
  const { firstStart } = await import('../../broker/first-start.ts');
  const sandboxes = await import('../../broker/sandbox.ts');
  const { readProfile } = await import('../../mcp/profile.ts');
  const { agentSigner } = await import('../../mcp/client/signer.ts');
  const { verifyReceipt } = await import('../../broker/audit/verify-receipt.ts');
  const started = performance.now();
  const steps: Record<string, unknown>[] = [];
  const tell = (text: string) => asJson || process.stdout.write(`${text}\n`);
  const expectThat = (holds: boolean, what: string): void => {
    if (!holds)
      throw new CommandFailed(`The demo went wrong: ${what}. Please report it with the version of agent-broker.`);
  };

  const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: folder });
  const sandbox = await sandboxes.startSandboxPlatform(folder);
  let running: Awaited<ReturnType<typeof serve>> | undefined;
  try {
    running = await serve(config, {
      allowPrivate: [new URL(sandbox.url).host],
      beforeServing: async (services) => {
        await sandboxes.settleSandbox(services, await firstStart(services), sandbox);
      },
    });
    const { baseUrl } = running;
    const profile = readProfile({}, sandboxes.sandboxProfile(folder));
    const token = agentSigner(profile);
    const call = async (action: Record<string, unknown>): Promise<Answer> => {
      const response = await fetch(`${baseUrl}/v1/actions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ platform: 'sandbox', ...action }),
      });
      const answer = { status: response.status, body: (await response.json()) as Record<string, unknown> };
      steps.push({ action, ...answer });
      return answer;
    };
    const credential = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8')).token as string;

    tell(`A broker at ${baseUrl}, and a platform behind it with issues, mail and refunds.`);
    tell(`The agent ${profile.agentId} holds its own RSA key. It never sees the platform's credential.`);

    tell('\n1. It reads the open issues.');
    const read = await call({ endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' });
    const items = (read.body.data as { items?: { title?: string }[] } | undefined)?.items ?? [];
    expectThat(read.status === 200 && items.length > 0, 'the read did not pass');
    expectThat(!JSON.stringify(read.body).includes(credential), 'the credential was in the answer');
    tell(`   200: ${items.length} issues, the first is “${items[0]?.title}”. The credential was put in by the broker.`);

    tell('\n2. It tries to change one, with no more than the scope for reading.');
    const refused = await call({
      endpoint: '/issues/1',
      method: 'PATCH',
      scope: 'sandbox:issues.read',
      data: { state: 'closed' },
    });
    expectThat(refused.body.reason === 'endpoint_scope_mismatch', 'the change was not refused');
    tell(`   403 ${refused.body.reason}: ${refused.body.detail}`);

    tell('\n3. It asks for a refund.');
    const held = await call({
      endpoint: '/refunds',
      method: 'POST',
      scope: 'sandbox:refunds.create',
      data: { payment: 'pay_1001', amount: 500, reason: 'arrived broken' },
      reason: 'The customer sent a photo of the broken cup.',
    });
    expectThat(held.status === 202, 'the refund was not held');
    tell(`   202 ${held.body.status}: nothing was sent. It waits for a person as approval ${held.body.approval_id}.`);

    tell('\n4. Every decision left a signed receipt. The one of the refusal:');
    const receipt = await (
      await fetch(`${baseUrl}/v1/audit/${refused.body.audit_id}/receipt`, {
        headers: { authorization: `Bearer ${token()}`, accept: 'application/jose' },
      })
    ).text();
    const keys = await (await fetch(`${baseUrl}/.well-known/svc-receipt-keys.json`)).text();
    const verified = verifyReceipt(receipt, keys);
    if (!verified.ok) throw new CommandFailed(`The demo went wrong: the receipt does not verify: ${verified.error}`);
    const { payload } = verified;
    tell(`   genuine, signed by key ${verified.kid}:`);
    tell(`   ${payload.result} ${payload.method} ${payload.path} for ${payload.agent}, because ${payload.reason}.`);
    steps.push({ receipt: payload, kid: verified.kid });

    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    tell(`\nThat took ${seconds} s. Now your own: npx agent-broker serve`);
    if (asJson) process.stdout.write(`${JSON.stringify({ seconds: Number(seconds), steps }, null, 2)}\n`);
  } finally {
    await running?.stop();
    await sandbox.close();
  }
}
