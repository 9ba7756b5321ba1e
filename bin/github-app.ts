/** Makes a GitHub App in a browser, or takes one that is there, and says what to write into the governance file. */

import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { NoSuchScope, permissionsFor } from '../broker/platforms/app-permissions.ts';
import type { GitHubSite } from '../broker/platforms/github-site.ts';
import { APP_KEY, readRsaKey } from '../broker/token-source/rsa-key.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import {
  type AppInstallation,
  convertManifest,
  listInstallations,
  type MadeApp,
  readApp,
  siteOf,
} from './github-api.ts';
import { openManifestPage } from './github-app-page.ts';
import { type GitHubAppResult, installationUrl, resultOf } from './github-app-result.ts';
import { readText } from './read-text.ts';

export type GitHubAppOptions = {
  appId?: string;
  keyFile?: string;
  host: string;
  org?: string;
  name?: string;
  scopes?: string;
  wait: boolean;
};

/** GitHub's limit. */
const LONGEST_NAME = 34;
const ORGANISATION = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/;
/** Until somebody has installed it. */
const INSTALL_PATIENCE_MS = 10 * 60_000;
const ASK_EVERY_MS = 3_000;

/** `say`: for a person, while the command waits for them. Throws CommandFailed; WrongUsage. */
export async function gitHubApp(options: GitHubAppOptions, say: (text: string) => void): Promise<GitHubAppResult> {
  const site = siteOf(options.host);
  if (options.appId === undefined) return await makeApp(site, options, say);
  if (options.keyFile === undefined) throw new WrongUsage('Name the file of its private key: --key-file FILE.');
  const key = keyIn(options.keyFile);
  const { name, html_url } = await readApp(site, options.appId, key);
  const installations = await listInstallations(site, options.appId, key);
  return resultOf(site, { appId: options.appId, name, html_url, keyFile: options.keyFile, installations });
}

async function makeApp(
  site: GitHubSite,
  options: GitHubAppOptions,
  say: (text: string) => void,
): Promise<GitHubAppResult> {
  const { org } = options;
  if (org !== undefined && !ORGANISATION.test(org)) throw new WrongUsage(`${org} is not the name of an organisation.`);
  const manifest = {
    name: (options.name ?? `agent-broker ${hostname()}`).slice(0, LONGEST_NAME),
    url: 'https://www.npmjs.com/package/agent-broker',
    public: false,
    default_events: [],
    default_permissions: permissionsOf(options.scopes?.split(',')),
  };
  const keyFile = options.keyFile ?? 'github-app.pem';
  // Before the App is made: its key is shown once.
  reserve(keyFile);
  const page = await openManifestPage(
    `${site.web}${org === undefined ? '' : `/organizations/${org}`}/settings/apps/new`,
    manifest,
  );
  let made: MadeApp | undefined;
  try {
    say(`Open this in a browser on this machine, and create the App there:\n\n  ${page.url}\n`);
    made = await convertManifest(site, await page.code);
    writeFileSync(keyFile, made.pem);
    const next = installationUrl(made.html_url);
    page.finish(next);
    say(`The App ${made.name} is made, and its key is in ${keyFile}. Now install it:\n\n  ${next}\n`);
  } finally {
    if (made === undefined) {
      page.finish(undefined);
      rmSync(keyFile, { force: true });
    }
    page.close();
  }
  const installations = options.wait ? await untilInstalled(site, made, say) : [];
  return resultOf(site, { ...made, appId: String(made.id), keyFile, installations });
}

/** Throws WrongUsage. */
function permissionsOf(scopes: readonly string[] | undefined): Record<string, string> {
  try {
    return permissionsFor(scopes);
  } catch (error) {
    if (error instanceof NoSuchScope)
      throw new WrongUsage(`There is no scope ${error.message}. docs/platforms.md leads to their list.`);
    throw error;
  }
}

function reserve(keyFile: string): void {
  try {
    mkdirSync(dirname(resolve(keyFile)), { recursive: true });
    // One that is empty was left by a command that was ended.
    const isFree = statSync(keyFile, { throwIfNoEntry: false })?.size === 0;
    if (isFree) rmSync(keyFile);
    writeFileSync(keyFile, '', { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailed(
      code === 'EEXIST'
        ? `There is a file ${keyFile} already, which is kept. Name another one with --key-file.`
        : `The key cannot be written to ${keyFile} (${code}). Name another file with --key-file.`,
    );
  }
}

function keyIn(file: string) {
  const read = readRsaKey(readText(file, `The file ${file}`), APP_KEY);
  if (!read.ok) throw new CommandFailed(`What ${file} holds ${read.problem}.`);
  return read.key;
}

async function untilInstalled(
  site: GitHubSite,
  { id, pem }: MadeApp,
  say: (text: string) => void,
): Promise<AppInstallation[]> {
  const read = readRsaKey(pem, APP_KEY);
  if (!read.ok) throw new CommandFailed(`The key that GitHub made ${read.problem}.`);
  say('Waiting until it is installed (Ctrl-C ends the waiting, and nothing else) …');
  const until = performance.now() + INSTALL_PATIENCE_MS;
  while (performance.now() < until) {
    const found = await listInstallations(site, String(id), read.key);
    if (found.length > 0) return found;
    await pause(ASK_EVERY_MS);
  }
  return [];
}
