/** The sandbox for trying the broker out: a test platform, and an agent that may use it, without any account. */

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { SANDBOX_MANIFEST, SANDBOX_POLICY, type Sandbox, startSandbox } from '../../lab/sandbox.ts';
import { SANDBOX_APPLY } from '../admin/governance-file.ts';
import { SANDBOX_AGENT, SANDBOX_PLATFORM, sandboxProfile } from '../admin/organisations/demo.ts';
import { operatorAtStart, recordChange } from '../audit/record-change.ts';
import { governanceOf } from '../config-file/parse.ts';
import { applyGovernance } from '../config-plan/apply-recorded.ts';
import { Secret } from '../crypto/secret.ts';
import { present } from '../runtime/present.ts';
import type { Services } from '../services.ts';
import { listAgents } from '../store/agents.ts';
import { putPlatform } from '../store/governed-versions.ts';
import { listPlatforms } from '../store/platforms.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';

const SECRET_FILE = 'sandbox';
const PREFERRED_PORT = 8790;

/** The stored settings of the sandbox, in the data folder. */
const Remembered = z.object({ port: z.number(), token: z.string() });

const rememberedAt = (dataFolder: string): string => join(dataFolder, 'sandbox.json');

/** Whether this data folder has a sandbox already. */
export const hasSandbox = (dataFolder: string): boolean => existsSync(rememberedAt(dataFolder));

/**
 * Starts the platform, on its previous port when that is free. Port and token are stored in a new data folder here, so that they are reused after a
 * first start that fails later. Throws, with nothing left listening, when the folder cannot be written.
 */
export async function startSandboxPlatform(dataFolder: string): Promise<Sandbox & { token: string }> {
  const path = rememberedAt(dataFolder);
  const known = hasSandbox(dataFolder)
    ? readStored(Remembered, readFileSync(path, 'utf8'), `sandbox (${path})`)
    : { port: PREFERRED_PORT, token: randomBytes(24).toString('base64url') };
  let sandbox: Sandbox;
  try {
    sandbox = await startSandbox({ port: known.port, token: known.token });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    sandbox = await startSandbox({ port: 0, token: known.token });
  }
  const started = { ...sandbox, token: known.token };
  try {
    if (!hasSandbox(dataFolder)) remember(dataFolder, started);
  } catch (error) {
    await started.close();
    throw error;
  }
  return started;
}

/** Stores port and token for the next start. */
function remember(dataFolder: string, { url, token }: Sandbox & { token: string }): void {
  const path = rememberedAt(dataFolder);
  const text = `${JSON.stringify({ port: Number(new URL(url).port), token })}\n`;
  // An unchanged file is not rewritten: on a full disk that would truncate it.
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  writeFileSync(path, text, { mode: 0o600 });
}

/**
 * Creates the sandbox's platform, policy and agent in an empty organisation, or, when they exist, updates the addresses of platform and
 * profile. The agent's private key is written to its profile and nowhere else. Returns whether the organisation has the sandbox: a
 * governance file may have removed it.
 */
export async function settleSandbox(
  services: Services,
  organisationId: string,
  sandbox: Sandbox & { token: string },
): Promise<boolean> {
  const { broker } = services;
  const { db } = broker.store;
  const manifest = { ...SANDBOX_MANIFEST, base_url: sandbox.url };
  const platforms = await listPlatforms(db, organisationId);
  const platform = platforms.find((each) => each.platform_id === SANDBOX_PLATFORM);
  if (platform) {
    // Only now: a folder that another broker serves was refused before.
    remember(broker.config.dataFolder, sandbox);
    const moved = { ...readStored(StoredObject, platform.manifest, 'manifest'), base_url: sandbox.url };
    if (JSON.stringify(moved) !== platform.manifest)
      await movePlatform(services, organisationId, JSON.stringify(moved));
    moveProfile(sandboxProfile(broker.config.dataFolder), broker.baseUrl);
    return true;
  }
  // Only in an empty organisation: the governance document below is complete, so whatever it does not list would be removed.
  if (platforms.length > 0 || (await listAgents(db, organisationId)).length > 0) return false;
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const parsed = governanceOf(
    {
      platforms: { [SANDBOX_PLATFORM]: manifest },
      connections: { sandbox: { platform: SANDBOX_PLATFORM, secret: { file: SECRET_FILE } } },
      policies: { sandbox: SANDBOX_POLICY },
      agents: {
        [SANDBOX_AGENT]: {
          policy: 'sandbox',
          public_key: { pem: publicKey.export({ format: 'pem', type: 'spki' }) },
          grants: { [SANDBOX_PLATFORM]: { scopes: Object.keys(SANDBOX_MANIFEST.scopes) } },
        },
      },
    },
    'the sandbox',
  );
  if (!parsed.ok) throw new Error(`The sandbox is not valid governance: ${parsed.problems[0]?.message}`);
  const resolved = new Map([[`file:${SECRET_FILE}`, new Secret(sandbox.token)]]);
  const by = operatorAtStart(organisationId);
  const applied = await applyGovernance(services, by, parsed.governance, resolved, { detail: SANDBOX_APPLY });
  if (!applied.ok) throw new Error(`The sandbox could not be made: ${applied.problems[0]?.message}`);
  const agents = await listAgents(db, organisationId);
  const agent = present(
    agents.find((each) => each.name === SANDBOX_AGENT),
    'agent of the sandbox',
  );
  const path = sandboxProfile(broker.config.dataFolder);
  mkdirSync(join(broker.config.dataFolder, 'profiles'), { recursive: true, mode: 0o700 });
  const profile = {
    url: broker.baseUrl,
    agent_id: agent.agent_id,
    owner_id: agent.owner_id,
    private_key: privateKey.export({ format: 'pem', type: 'pkcs8' }),
  };
  writeFileSync(path, `${JSON.stringify(profile, null, 2)}\n`, { mode: 0o600 });
  return true;
}

/** Changes the manifest, recorded in the audit as a change by a file is. */
async function movePlatform(services: Services, organisationId: string, manifest: string): Promise<void> {
  const change = {
    reason: 'governance_applied',
    detail: 'the sandbox has another address',
    platform: SANDBOX_PLATFORM,
  };
  await recordChange(services, operatorAtStart(organisationId), change, async (db, note) => {
    await putPlatform(db, { organisationId, platformId: SANDBOX_PLATFORM, manifest }, services.broker.clock());
    note({ changes: [`update platform ${SANDBOX_PLATFORM}`] });
  });
}

/** Updates the broker's address in the profile, which may have changed since the last start. */
function moveProfile(path: string, url: string): void {
  if (!existsSync(path)) return;
  const profile = readStored(StoredObject, readFileSync(path, 'utf8'), `profile (${path})`);
  if (profile.url !== url) writeFileSync(path, `${JSON.stringify({ ...profile, url }, null, 2)}\n`, { mode: 0o600 });
}
