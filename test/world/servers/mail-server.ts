/** An SMTP server on loopback that stores received mails. */
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { certificateFor } from '../../egress/certificate.ts';
import { afterFile } from '../runner/after-file.ts';

/** The certificate of all these servers, for `localhost`. */
export const MAIL_CERTIFICATE = certificateFor('localhost');

export type Mail = { text: string; from: string; to: string[]; secure: boolean; user: string | undefined };

/** Starts a server, which ends with the test file; returns its port and the mails. Clients have to authenticate with the password. */
export async function startMailServer(password: string, options: SMTPServerOptions = {}) {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    key: MAIL_CERTIFICATE.key,
    cert: MAIL_CERTIFICATE.cert,
    authOptional: true,
    logger: false,
    onAuth: ({ username, password: given }, _session, done) =>
      given === password ? done(null, { user: username }) : done(new Error('no')),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          text: Buffer.concat(chunks).toString(),
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          secure: session.secure,
          user: session.user === undefined ? undefined : String(session.user),
        });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as AddressInfo).port, mails };
}
