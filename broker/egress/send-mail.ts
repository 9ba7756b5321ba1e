/** Sends a mail: the library implements SMTP (RFC 5321) over the broker's guarded connection. */
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from './dispatcher.ts';
import { errorCode, isCertificateCode } from './unreachable.ts';

/** `security`: `tls` from the first byte; `starttls`, which is required before anything is sent; `none`, for this machine only. */
export type MailServer = {
  host: string;
  port: number;
  security: 'tls' | 'starttls' | 'none';
  user: string | undefined;
  password: Secret | undefined;
  /** PEM certificates to trust instead of the system's. */
  ca?: string | undefined;
  /** Timeout of each step, in milliseconds; all steps together may take twice as long. */
  timeoutMs?: number | undefined;
};

export type Mail = {
  from: string;
  to: readonly string[];
  subject: string;
  text: string;
  html: string;
  /** With angle brackets. A second copy has the same id. */
  messageId: string;
};

/** `refused`: recipients that the server refused while it accepted the mail for others. `why`: a fixed sentence; of the server's reply it contains only the number. */
export type Mailed = { ok: true; refused?: readonly string[] } | { ok: false; why: string };

/** Submission, submission over TLS, and mail (RFC 8314, RFC 6409). */
const PORTS = [465, 587, 2525, 25];
const TIMEOUT_MS = 10_000;
/** More than any server needs to send. */
const MAX_BYTES = 256 * 1024;
const WATCH_MS = 100;

/** Sends one mail. Never rejects. */
export async function sendMail({ dial }: Pick<Outbound, 'dial'>, server: MailServer, mail: Mail): Promise<Mailed> {
  const { host, port, security, user, password, ca, timeoutMs = TIMEOUT_MS } = server;
  const { default: nodemailer } = await import('nodemailer');
  const socket = await dial({ host, port, ports: PORTS });
  if ('kind' in socket) return { ok: false, why: socket.detail };
  // A server that sends without end must not fill memory: the library buffers until the end of a line.
  const watch = setInterval(() => {
    if (socket.bytesRead > MAX_BYTES) socket.destroy();
  }, WATCH_MS);
  const late = setTimeout(() => socket.destroy(), 2 * timeoutMs);
  const transport = nodemailer.createTransport({
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    tls: { servername: host, rejectUnauthorized: true, minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) },
    ...(user !== undefined && password && { auth: { user, pass: password.reveal() } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    getSocket: (_options, done) => done(null, { connection: socket }),
  });
  try {
    const { rejected } = await transport.sendMail({
      from: mail.from,
      to: [...mail.to],
      subject: mail.subject,
      text: mail.text,
      html: mail.html,
      messageId: mail.messageId,
      // RFC 3834: suppresses automatic replies.
      headers: { 'Auto-Submitted': 'auto-generated' },
    });
    const refused = mail.to.filter((address) => rejected.some((one) => String(one) === address));
    return { ok: true, ...(refused.length > 0 && { refused }) };
  } catch (error) {
    return { ok: false, why: reasonOf(error) };
  } finally {
    clearInterval(watch);
    clearTimeout(late);
    transport.close();
    socket.destroy();
  }
}

const CONNECTION_BROKE = 'The connection to the mail server broke';
const WHY: Readonly<Record<string, string>> = {
  EAUTH: 'The mail server did not accept the user name or the password',
  ETLS: 'No trusted TLS connection to the mail server could be made',
  EENVELOPE: 'The mail server refused the sender or a recipient',
  EMESSAGE: 'The mail server refused the message',
  ETIMEDOUT:
    'The mail server did not answer in time; where its port takes TLS from the first byte, as 465 does, "security" has to be "tls"',
  ECONNECTION: CONNECTION_BROKE,
  ESOCKET: CONNECTION_BROKE,
  ERR_SSL_WRONG_VERSION_NUMBER:
    'The port of the mail server takes TLS by STARTTLS, as 587 does, or none: "security" has to be "starttls"',
  EPROTOCOL: 'What the mail server answered is no SMTP',
};

/** Replies that say more than the step in which they came: a greeting that accepts no mail (RFC 5321 section 3.1), and a missing AUTH (RFC 4954). */
function reasonOfReply(code: string, responseCode: number | undefined): string | undefined {
  if (responseCode === undefined) return undefined;
  if (responseCode === 530) return 'The mail server requires a user name and a password';
  return code === 'EPROTOCOL' && responseCode >= 400 && responseCode < 600
    ? 'The mail server did not accept the connection'
    : undefined;
}

function reasonOf(error: unknown): string {
  const code = errorCode(error) ?? '';
  const { responseCode, originalCode = '' } = error as { responseCode?: number; originalCode?: string };
  const known = [originalCode, code].find((one) => Object.hasOwn(WHY, one));
  const why = isCertificateCode(originalCode)
    ? `The certificate of the mail server is not trusted (${originalCode})`
    : (reasonOfReply(code, responseCode) ??
      (known === undefined ? 'The mail server did not accept the message' : WHY[known]));
  return Number.isInteger(responseCode) ? `${why} (${responseCode}).` : `${why}.`;
}
