import { importPKCS8, SignJWT } from 'jose';
import type { Profile } from './profile.ts';

/**
 * Signs an agent token: RS256, `seconds` of life (at most 300), fresh for each request.
 * Throws when the profile's key is no RSA private key.
 */
export async function signAgentToken(profile: Profile, seconds = 60): Promise<string> {
  const key = await importPKCS8(profile.privateKey, 'RS256');
  const now = Math.floor(Date.now() / 1000);
  return await new SignJWT({ agent_id: profile.agentId, owner_id: profile.ownerId })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuedAt(now)
    .setExpirationTime(now + seconds)
    .sign(key);
}
