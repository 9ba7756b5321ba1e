/** A real SMTP server on loopback that keeps the mails that came. */
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { certificateFor } from '../egress/certificate.ts';
import { afterFile } from './after-file.ts';

/** Of all of them, for `localhost`. */
export const MAIL_CERTIFICATE = certificateFor('localhost');

export type Mail = { text: string; from: string; to: string[]; secure: boolean; user: string | undefined };

/** Starts one, which ends with the test file; answers its port and what came. Whoever signs in has to have the password. */
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
