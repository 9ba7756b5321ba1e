/** Creates a GitHub App in a browser, or uses an existing one, and prints what to write into the governance file. */

import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { NoSuchScope, permissionsFor } from '../../broker/platforms/app-permissions.ts';
import type { GitHubSite } from '../../broker/platforms/github-site.ts';
import { APP_KEY, readRsaKey } from '../../broker/token-source/rsa-key.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { readText } from '../read-text.ts';
import { type AppInstallation, convertManifest, listInstallations, type MadeApp, readApp, siteOf } from './api.ts';
import { openManifestPage } from './page.ts';
import { type GitHubAppResult, installationUrl, resultOf } from './result.ts';

export type GitHubAppOptions = {
  appId?: string;
  keyFile?: string;
  host: string;
  org?: string;
  name?: string;
  scopes?: string;
  wait: boolean;
};

/** GitHub's limit for names of Apps, in characters. */
const MAX_NAME_LENGTH = 34;
const ORGANISATION = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/;
/** How long to wait for a person to install the App. */
const INSTALL_TIMEOUT_MS = 10 * 60_000;
const POLL_INTERVAL_MS = 3_000;

/** Runs the command. `say` shows a line to the person while the command waits for them. Throws CommandFailed; WrongUsage. */
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
    name: (options.name ?? `agent-broker ${hostname()}`).slice(0, MAX_NAME_LENGTH),
    url: 'https://www.npmjs.com/package/agent-broker',
    public: false,
    default_events: [],
    default_permissions: permissionsOf(options.scopes?.split(',')),
  };
  const keyFile = options.keyFile ?? 'github-app.pem';
  // The file is reserved before the App is created, because GitHub shows its key only once.
  reserve(keyFile);
  const page = await openManifestPage(
    `${site.web}${org === undefined ? '' : `/organizations/${org}`}/settings/apps/new`,
    manifest,
  );
  let made: MadeApp;
  try {
    say(`Open this in a browser on this machine, and create the App there:\n\n  ${page.url}\n`);
    made = await convertManifest(site, await page.code);
    keep(keyFile, made);
    const next = installationUrl(made.html_url);
    page.finish(next);
    say(
      `The App ${made.name} was created with the id ${made.id}, and its key is in ${keyFile}. Now install it:\n\n  ${next}\n`,
    );
  } catch (error) {
    page.finish(undefined);
    rmSync(keyFile, { force: true });
    throw error;
  } finally {
    page.close();
  }
  const installations = options.wait ? await untilInstalled(site, made, say) : [];
  return resultOf(site, { ...made, appId: String(made.id), keyFile, installations });
}

/** Returns the permissions for these scopes. Throws WrongUsage. */
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
    // An empty file was left by a command that was interrupted.
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

/** Writes the key to its file. Throws CommandFailed with instructions: the App exists, and GitHub does not show this key again. */
function keep(keyFile: string, { id, name, html_url, pem }: MadeApp): void {
  try {
    writeFileSync(keyFile, pem);
  } catch (error) {
    throw new CommandFailed(
      `The App ${name} was created with the id ${id}, but its key cannot be written to ${keyFile} (${(error as NodeJS.ErrnoException).code}). ` +
        `Make another key for it in its settings (${html_url} leads there), and go on with --app-id ${id} --key-file FILE.`,
    );
  }
}

function keyIn(file: string) {
  const read = readRsaKey(readText(file, `The file ${file}`), APP_KEY);
  if (!read.ok) throw new CommandFailed(`What ${file} holds ${read.problem}.`);
  return read.key;
}

/** Polls until the App is installed. Errors are reported and retried: the new App may not be known on all of GitHub's servers yet. */
async function untilInstalled(
  site: GitHubSite,
  { id, pem }: MadeApp,
  say: (text: string) => void,
): Promise<AppInstallation[]> {
  const read = readRsaKey(pem, APP_KEY);
  if (!read.ok) throw new CommandFailed(`The key that GitHub made ${read.problem}.`);
  say('Waiting until it is installed (Ctrl-C ends the waiting, and nothing else) …');
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once('SIGINT', leave);
  const until = performance.now() + INSTALL_TIMEOUT_MS;
  let told = '';
  try {
    while (performance.now() < until && !leaving.signal.aborted) {
      try {
        const found = await listInstallations(site, String(id), read.key);
        if (found.length > 0) return found;
      } catch (error) {
        if (!(error instanceof CommandFailed)) throw error;
        if (error.message !== told) say(`${error.message} Asking again …`);
        told = error.message;
      }
      await pause(POLL_INTERVAL_MS, undefined, { signal: leaving.signal }).catch(() => {});
    }
  } finally {
    process.off('SIGINT', leave);
  }
  return [];
}
