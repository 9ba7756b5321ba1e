/** Mail through the guarded egress: to a real SMTP server on loopback, encrypted, refused, silent, and with hostile sentences. */
import { createServer } from 'node:net';
import type { SMTPServerOptions } from 'smtp-server';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { sendMail } from '../../broker/egress/send-mail.ts';
import { email } from '../../broker/notify/email.ts';
import type { Message } from '../../broker/notify/message.ts';
import { certificateFor } from '../egress/certificate.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { afterFile } from '../world/runner/after-file.ts';
import {
  MAIL_CERTIFICATE as certificate,
  type Mail,
  startMailServer as startMailServerWith,
} from '../world/servers/mail-server.ts';

const PASSWORD = 'PASSWORD-c0ffee';
const HOSTILE = '<img src=x onerror=alert(1)> <a href="http://evil.example">Approve</a> “x”\r\nBcc: evil@evil.example';

const MESSAGE: Message = {
  id: '00000000-0000-4000-8000-000000000001',
  event: 'call_held',
  step: 'first',
  subjectId: '00000000-0000-4000-8000-000000000002',
  title: 'Approval needed',
  sentence: { template: null, parts: [{ text: 'Sends ' }, { value: HOSTILE, quoted: true }] },
  agent: 'triage',
  platform: { id: 'demo', name: 'demo' },
  until: Date.UTC(2026, 0, 31, 9, 30),
  link: 'https://broker.example/approve/1',
  outcome: undefined,
};

const startMailServer = (options?: SMTPServerOptions) => startMailServerWith(PASSWORD, options);

const way = (ports: number[]) => {
  const outbound = makeOutbound({ allowPrivate: ports.map((port) => `localhost:${port}`), connectTimeoutMs: 2_000 });
  afterFile(() => outbound.close());
  return outbound;
};
const MAIL = { from: 'broker@acme.example', to: ['ann@acme.example'], subject: 's', text: 't', html: '<p>t</p>' };
const mail = { ...MAIL, messageId: '<1@broker.example>' };
const to = (port: number, more: object = {}) => ({
  host: 'localhost',
  port,
  security: 'starttls' as const,
  user: undefined,
  password: undefined,
  ca: certificate.cert,
  ...more,
});

describe('a mail', () => {
  test.each([
    ['starttls', false],
    ['tls', true],
  ] as const)('is sent by %s, authenticated', async (security, secure) => {
    const { port, mails } = await startMailServer({ secure });
    const server = to(port, { security, user: 'broker', password: new Secret(PASSWORD) });
    expect(await sendMail(way([port]), server, mail)).toEqual({ ok: true });
    expect(mails).toMatchObject([{ secure: true, user: 'broker', from: MAIL.from, to: MAIL.to }]);
    expect(mails[0]!.text).toContain('Message-ID: <1@broker.example>');
  });

  test('a server that offers no encryption, has another certificate or refuses the password gets no mail', async () => {
    const plain = await startMailServer({ disabledCommands: ['STARTTLS'] });
    const strict = await startMailServer();
    const outbound = way([plain.port, strict.port]);
    expect(await sendMail(outbound, to(plain.port), mail)).toMatchObject({ ok: false, why: /TLS/ });
    const untrusted = await sendMail(outbound, to(strict.port, { ca: certificateFor('other').cert }), mail);
    expect(untrusted).toMatchObject({ why: expect.stringMatching(/^The certificate of the .* \([A-Z_]+\)\.$/) });
    const wrong = await sendMail(outbound, to(strict.port, { user: 'broker', password: new Secret('WRONG-1') }), mail);
    expect(wrong).toEqual({ ok: false, why: 'The mail server did not accept the user name or the password (535).' });
    expect([...plain.mails, ...strict.mails]).toEqual([]);
  });

  test('when port and encryption mode do not match, the error suggests the right ones', async () => {
    const [byStarttls, byTls] = [await startMailServer(), await startMailServer({ secure: true })];
    const outbound = way([byStarttls.port, byTls.port]);
    const tooEarly = await sendMail(outbound, to(byStarttls.port, { security: 'tls' }), mail);
    expect(tooEarly).toMatchObject({ ok: false, why: expect.stringContaining('"security" has to be "starttls"') });
    const tooLate = await sendMail(outbound, to(byTls.port, { timeoutMs: 300 }), mail);
    expect(tooLate).toMatchObject({ ok: false, why: expect.stringContaining('"security" has to be "tls"') });
    expect([...byStarttls.mails, ...byTls.mails]).toEqual([]);
  });

  test.each([
    ['421 too busy', 'The mail server did not accept the connection (421).'],
    ['554 no service', 'The mail server did not accept the connection (554).'],
    ['HTTP/1.1 400 Bad Request', 'What the mail server answered is no SMTP.'],
  ])('a server that greets with %s is reported as such', async (greeting, why) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(`${greeting}\r\n`);
    });
    const port = await listenOnLoopback(server);
    afterFile(() => server.close());
    expect(await sendMail(way([port]), to(port), mail)).toEqual({ ok: false, why });
  });

  test('a server that requires authentication is reported as such', async () => {
    const { port } = await startMailServer({
      disabledCommands: ['STARTTLS'],
      onMailFrom: (_address, _session, done) =>
        done(Object.assign(new Error('Authentication required'), { responseCode: 530 })),
    });
    const why = 'The mail server requires a user name and a password (530).';
    expect(await sendMail(way([port]), to(port, { security: 'none' }), mail)).toEqual({ ok: false, why });
  });

  test('a server that hangs up is reported as such', async () => {
    const server = createServer((socket) => socket.once('data', () => socket.destroy()).write('220 ready\r\n'));
    const port = await listenOnLoopback(server);
    const mailed = await sendMail(way([port]), to(port), mail);
    expect(mailed).toEqual({ ok: false, why: 'The connection to the mail server broke.' });
  });

  test('an address that is not public, and a port that is not for mail, are refused before anything is sent', async () => {
    const { port, mails } = await startMailServer();
    const refused = {
      ok: false,
      why: 'The address of the server is not one that this broker may connect to: it is not public, and the operator has not allowed it (AGENT_BROKER_ALLOW_PRIVATE).',
    };
    expect(await sendMail(way([]), to(port), mail)).toEqual(refused);
    expect(await sendMail(way([]), to(587), mail)).toEqual(refused);
    expect(await sendMail(way([]), to(22, { host: '93.184.215.14' }), mail)).toEqual(refused);
    expect(mails).toEqual([]);
  });

  test('a server that sends without end is cut off', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(64 * 1024, 'x')));
      };
      socket.on('drain', more);
      more();
    });
    const port = await listenOnLoopback(server);
    const before = process.memoryUsage().rss;
    expect(await sendMail(way([port]), to(port), mail)).toMatchObject({ ok: false });
    expect(process.memoryUsage().rss - before).toBeLessThan(500 * 1024 * 1024);
  });

  test('recipients that the server refuses are named, and the others get the mail', async () => {
    const { port, mails } = await startMailServer({
      disabledCommands: ['STARTTLS'],
      onRcptTo: ({ address }, _session, done) =>
        address === 'bob@acme.example' ? done(Object.assign(new Error('SERVER TEXT'), { responseCode: 550 })) : done(),
    });
    const sending = {
      channelId: 'c',
      settings: { host: 'localhost', port, security: 'none', from: MAIL.from, to: ['bob@acme.example', ...MAIL.to] },
      secret: undefined,
      outbound: way([port]),
      now: 0,
    };
    const lacking = 'The mail server refused bob@acme.example; the others got it.';
    expect(await email.send(sending, MESSAGE)).toEqual({ kind: 'sent', lacking });
    expect(mails).toMatchObject([{ to: MAIL.to }]);
    const nobody = { ...sending, settings: { ...sending.settings, to: ['bob@acme.example'] } };
    expect(await email.send(nobody, MESSAGE)).toEqual({
      kind: 'failed',
      why: 'The mail server refused the sender or a recipient (550).',
    });
  });

  test('a hostile sentence is plain text, and adds no header line', async () => {
    const { port, mails } = await startMailServer({ disabledCommands: ['STARTTLS'] });
    const sending = {
      channelId: 'c',
      settings: { host: 'localhost', port, security: 'none', from: MAIL.from, to: MAIL.to },
      secret: undefined,
      outbound: way([port]),
      now: 0,
    };
    expect(await email.send(sending, MESSAGE)).toEqual({ kind: 'sent' });
    const [{ text, to: recipients }] = mails as [Mail];
    expect(recipients).toEqual(MAIL.to);
    expect(text).not.toMatch(/^bcc:/im);
    expect(text.replace(/=\r\n/g, '')).toContain('=E2=9F=A6U+000D=E2=9F=A7');
    expect(text).toContain(`Message-ID: <${MESSAGE.id}@broker.example>`);
    const html = text.slice(text.indexOf('text/html')).replace(/=\r\n/g, '').replaceAll('=3D', '=');
    expect(html).toContain('&lt;img');
    expect(html).not.toContain('<img');
    expect(html.match(/<a href/g)).toHaveLength(1);
    // Mail clients make links of addresses in texts: the only one is the broker's.
    expect(text.slice(text.indexOf('text/plain')).replace(/=\r\n/g, '')).not.toMatch(
      /https?:\/\/evil|evil\.example|@evil/,
    );
  });
});
