/** Channels in a governance file: the section is complete, secrets are sealed and exported as references. */
import { describe, expect, test } from 'vitest';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, shared } from '../world/world.ts';
import { Governed, openBroker, problemsOf } from './governance-world.ts';

const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const HOOK =
  '  hook: { kind: webhook, url: "https://pager.acme.example/hook", secret: { env: KEY }, events: [call_held] }\n';
const PHONE = '  phone: { kind: ntfy, topic: acme-1, remind_minutes: 15 }\n';
const CHATS = `channels:
  ops: { kind: slack, channel: C0123456789, secret: { token: { env: SLACK }, signing_secret: { env: SIGNING } }, people: { U0123456789: ann@acme.example } }
  teams: { kind: teams, secret: { env: WORKFLOW } }
  phone: { kind: telegram, chat: "-1001234567890", secret: { env: BOT }, people: { "123456789": ann@acme.example } }
`;
const FILE = `channels:\n${HOOK}${PHONE}`;

describe.each(STORES)(`channels in governance files on %s${postgresNote}`, (store) => {
  const broker = shared(() => openBroker(store));
  const governed = fresh(async () => (await Governed.make(broker)).secret('env:KEY', KEY));

  const channels = async () => (await governed.present()).channels;
  const secretOf = async (name: string) => {
    const found = (await channels()).find((one) => one.name === name)!;
    const place = { table: 'notice_channels' as const, organisationId: governed.id, rowId: found.id };
    return found.secret && broker.vault.open(place, found.secret).toString();
  };

  test('are applied once, sealed; an export applies without a change, and unlisted channels are removed', async () => {
    const { plan } = await governed.apply(FILE);
    expect(plan.changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).toEqual([
      'create channel hook',
      'create channel phone',
    ]);
    expect(JSON.stringify(plan)).not.toContain(KEY);
    expect(await secretOf('hook')).toBe(KEY);
    const exported = await exportGovernance(broker, governed.id, governed.now);
    expect(exported).not.toContain(KEY);
    expect(exported).toContain('env: KEY');
    for (const text of [exported, FILE]) expect((await governed.apply(text)).plan.changes).toEqual([]);
    const { id } = (await channels())[0]!;
    const changed = await governed.apply(FILE.replace('[call_held]', '[agent_suspended]').replace(PHONE, ''));
    expect(changed.plan.changes).toMatchObject([
      { action: 'delete', name: 'phone' },
      { action: 'update', name: 'hook', details: [expect.stringMatching(/^rules: .*agent_suspended/)] },
    ]);
    expect(await channels()).toMatchObject([{ id, name: 'hook', status: 'active', origin: 'governance' }]);
    expect(await secretOf('hook')).toBe(KEY);
  });

  test('a new secret is stored, and a change of kind replaces the channel', async () => {
    await governed.apply(FILE);
    const { id } = (await channels())[0]!;
    governed.secret('env:KEY', KEY.replaceAll('Bw', 'CA'));
    expect((await governed.apply(FILE)).plan.changes).toMatchObject([{ name: 'hook', details: ['secret: changed'] }]);
    await governed.apply(`channels:\n  hook: { kind: ntfy, topic: acme-2 }\n`);
    expect(await channels()).toMatchObject([{ kind: 'ntfy', secret: null }]);
    expect((await channels())[0]!.id).not.toBe(id);
  });

  test('the parts of a chat’s secret are sealed together, and exported as references', async () => {
    governed.secret('env:SLACK', 'xoxb-1111111111').secret('env:SIGNING', 'a'.repeat(32));
    governed.secret('env:WORKFLOW', 'https://flow.example/x?sig=1').secret('env:BOT', `123456:${'b'.repeat(35)}`);
    await governed.apply(CHATS);
    expect(JSON.parse((await secretOf('ops'))!)).toEqual({ token: 'xoxb-1111111111', signing_secret: 'a'.repeat(32) });
    const exported = await exportGovernance(broker, governed.id, governed.now);
    expect(exported).not.toMatch(/xoxb-|aaaa|sig=/);
    for (const text of [exported, CHATS]) expect((await governed.apply(text)).plan.changes).toEqual([]);
  });

  test('decide_in may only name existing channels with buttons, in rules that require an approval', async () => {
    governed.secret('env:SLACK', 'xoxb-1111111111').secret('env:SIGNING', 'a'.repeat(32));
    governed.secret('env:WORKFLOW', 'https://flow.example/x?sig=1').secret('env:BOT', `123456:${'b'.repeat(35)}`);
    const file = (name: string, effect = 'require_approval') =>
      `${CHATS}policies: { careful: { rules: [{ effect: ${effect}, decide_in: [${name}] }] } }
guardrails: [{ name: writes, effect: require_approval, decide_in: [${name}] }]
`;
    const { plan } = await governed.apply(file('ops'));
    expect(JSON.stringify(plan)).toContain('decide_in ops');
    expect((await governed.apply(file('ops'))).plan.changes).toEqual([]);
    const said = (text: string) => governed.refusal(text).then((problems) => problems.join('\n'));
    expect(await said(file('opps'))).toMatch(/"opps": this channel does not exist[\s\S]*"opps"/);
    expect(await said(file('teams'))).toContain('only slack and telegram have');
    expect(problemsOf(file('ops', 'allow')).join()).toContain('allowed only in a rule that requires an approval');
  });

  test('a rule in force that names a channel without buttons is a warning, so that an export of it can be applied', async () => {
    governed.secret('env:SLACK', 'xoxb-1111111111').secret('env:SIGNING', 'a'.repeat(32));
    governed.secret('env:WORKFLOW', 'https://flow.example/x?sig=1').secret('env:BOT', `123456:${'b'.repeat(35)}`);
    const rules = `policies: { careful: { rules: [{ effect: require_approval, decide_in: [ops] }] } }
guardrails: [{ name: writes, effect: require_approval, decide_in: [ops] }]
`;
    await governed.apply(`${CHATS}${rules}`);
    const without = CHATS.replace(/ {2}ops:.*\n/, '');
    expect(without).not.toBe(CHATS);
    expect((await governed.refusal(`${without}${rules}`)).join()).toContain('"ops": this channel does not exist');
    // As an owner removes it in the console; a file without rules does so, too.
    await governed.apply(without);
    const text = await exportGovernance(broker, governed.id, governed.now);
    const { changes, warnings } = await governed.plan(text);
    expect(changes).toEqual([]);
    expect(warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'policies.careful.rules[0].decide_in[0]: "ops": this channel does not exist. No button decides there.',
      'guardrails[0].decide_in[0]: "ops": this channel does not exist. No button decides there.',
    ]);
    const changed = text.replace('name: writes', 'name: changed');
    expect((await governed.refusal(changed)).join()).toContain('guardrails[0].decide_in[0]: "ops": this channel');
  });

  test.each([
    ['a webhook without a secret', '  hook: { kind: webhook, url: "https://a.example/" }', 'has no secret'],
    ['a key that is none', '  hook: { kind: webhook, url: "https://a.example/", secret: { env: WEAK } }', 'whsec_'],
    ['a kind that is none', '  hook: { kind: pigeon }', 'kind'],
    ['an unknown member', '  hook: { kind: ntfy, topic: a, url: "https://a.example/" }', 'url'],
    [
      'a zone that is none',
      '  hook: { kind: ntfy, topic: a, quiet: { from: "22:00", to: "07:00", zone: Mars } }',
      'zone',
    ],
    [
      'quiet hours without an end',
      '  hook: { kind: ntfy, topic: a, quiet: { from: "08:00", to: "08:00", zone: UTC, days: [sun, sat, fri, thu, wed, tue, mon] } }',
      'nothing would ever be sent',
    ],
    [
      'plain mail elsewhere',
      '  hook: { kind: email, host: a.example, security: none, from: a@a.example, to: [a@a.example] }',
      'this machine only',
    ],
    ['a Slack channel by name', '  s: { kind: slack, channel: general, secret: { env: WEAK } }', 'id of the channel'],
    ['a token that is none', '  s: { kind: slack, channel: C0123456789, secret: { env: WEAK } }', 'xoxb-'],
    [
      'a part of a token',
      '  s: { kind: slack, channel: C0123456789, secret: { env: PART } }',
      'not a whole bot token of Slack: copy it again',
    ],
    ['a workflow without an address', '  t: { kind: teams }', 'has no secret'],
    [
      'a person who has no id',
      '  t: { kind: telegram, chat: "1", secret: { env: WEAK }, people: { ann: ann@acme.example } }',
      'not the id of a person',
    ],
    ['a secret in the file', `  hook: { kind: webhook, url: "https://a.example/", secret: ${KEY} }`, 'env: NAME'],
  ])('%s is refused, with the allowed value', async (_what, entry, said) => {
    governed.secret('env:WEAK', 'weak-value').secret('env:PART', 'xoxb-weak');
    const file = `channels:\n${entry}\n`;
    const found = problemsOf(file);
    const problems = (found.length > 0 ? found : await governed.refusal(file)).join('\n');
    expect(problems).toContain(said);
    expect(problems).not.toMatch(/weak-value|xoxb-weak/);
    expect(await channels()).toEqual([]);
  });
});
