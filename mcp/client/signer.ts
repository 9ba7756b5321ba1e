/** The agent token: a JWT that the agent signs itself, for each request (specification, Authentication 2). */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';

export type AgentKey =
  | {
      agentId: string;
      ownerId: string;
      /** RSA, PKCS#8 PEM. */
      privateKey: string;
    }
  | {
      agentId: string;
      /** For an agent without a key: the file where its platform keeps the token that it issues for the agent. Read for each request. */
      tokenFile: string;
    };

/** The private key cannot sign agent tokens, or there is no token in the file. */
export class AgentKeyError extends Error {
  override readonly name = 'AgentKeyError';
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const HEADER = base64url({ alg: 'RS256', typ: 'JWT' });

/**
 * Parses the key once. Returns a function that makes a token with a lifetime of `seconds` (default 60, at most 300). `now`: the
 * time in milliseconds. Throws AgentKeyError when the key is not an RSA private key; the returned function throws it when the file holds no token.
 */
export function agentSigner(key: AgentKey, now: () => number = Date.now): (seconds?: number) => string {
  if ('tokenFile' in key) return () => readToken(key.tokenFile);
  const privateKey = readKey(key.privateKey);
  return (seconds = 60) => {
    const iat = Math.floor(now() / 1000);
    const claims = { agent_id: key.agentId, owner_id: key.ownerId, iat, exp: iat + seconds };
    const input = `${HEADER}.${base64url(claims)}`;
    return `${input}.${sign('sha256', Buffer.from(input), privateKey).toString('base64url')}`;
  };
}

function readKey(pem: string): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem);
  } catch {}
  if (key?.asymmetricKeyType !== 'rsa')
    throw new AgentKeyError(
      'The private key of the profile is not an RSA key in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----).',
    );
  return key;
}

/** Reads the token from the file. Platforms replace the file before the token in it expires. */
function readToken(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new AgentKeyError(
      `The token of this agent, ${file}, cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return token;
  throw new AgentKeyError(`The file ${file} holds no token of this agent: it has to be one JWT, and nothing else.`);
}
