/** Requests of the command line to GitHub, or a GitHub Enterprise server, about an App. */
import type { KeyObject } from 'node:crypto';
import { type GitHubSite, gitHubSite } from '../../broker/platforms/github-site.ts';
import { signAppJwt } from '../../broker/token-source/app-request.ts';
import { CommandFailed } from '../failure.ts';

/** Returns the site of a URL. `url`: of the web site. Throws CommandFailed. */
export function siteOf(url: string): GitHubSite {
  const site = gitHubSite(url);
  if (!site) throw new CommandFailed(`${url} is not the address of a GitHub, such as https://github.acme.example.`);
  return site;
}

/** An App that was just created. GitHub shows its key only this once. */
export type MadeApp = { id: number; name: string; html_url: string; pem: string };

/** Exchanges GitHub's code for the new App (REST API, "Create a GitHub App from a manifest"). Throws CommandFailed. */
export async function convertManifest({ api, web }: GitHubSite, code: string): Promise<MadeApp> {
  const made = await ask(`${api}/app-manifests/${encodeURIComponent(code)}/conversions`, { method: 'POST' });
  const { id, name, html_url, pem } = objectOf(made);
  // A browser is sent to this page, so it must be on the same site.
  const isPage = typeof html_url === 'string' && URL.parse(html_url)?.origin === web;
  if (typeof id !== 'number' || typeof pem !== 'string' || !isPage)
    throw new CommandFailed(
      'GitHub created the App but did not return its id and key. Check it in your settings there.',
    );
  return { id, name: String(name), html_url, pem };
}

export type App = { name: string; html_url: string };

/** Reads the App that signs with this key. Throws CommandFailed, also when the key belongs to another App. */
export async function readApp({ api }: GitHubSite, appId: string, key: KeyObject): Promise<App> {
  const { name, html_url } = objectOf(await askAsApp(`${api}/app`, appId, key));
  return { name: String(name), html_url: String(html_url) };
}

export type AppInstallation = { id: number; account: string; suspended: boolean };

/** Lists the first hundred installations of the App. */
export async function listInstallations(
  { api }: GitHubSite,
  appId: string,
  key: KeyObject,
): Promise<AppInstallation[]> {
  const listed = await askAsApp(`${api}/app/installations?per_page=100`, appId, key);
  if (!Array.isArray(listed)) throw new CommandFailed('The response of GitHub is not a list of installations.');
  return listed
    .map(objectOf)
    .flatMap(({ id, account, suspended_at }) =>
      typeof id === 'number'
        ? [{ id, account: String(objectOf(account).login ?? id), suspended: typeof suspended_at === 'string' }]
        : [],
    );
}

const askAsApp = async (url: string, appId: string, key: KeyObject): Promise<unknown> =>
  await ask(url, { headers: { authorization: `Bearer ${await signAppJwt(key, appId, Date.now())}` } });

async function ask(url: string, init: RequestInit): Promise<unknown> {
  const { host } = new URL(url);
  let response: Response;
  try {
    response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(30_000),
      ...init,
      headers: { accept: 'application/vnd.github+json', 'user-agent': 'agent-broker', ...init.headers },
    });
  } catch {
    throw new CommandFailed(`${host} does not answer. Is it the right one, and is there a way to it from here?`);
  }
  if (response.status === 401)
    throw new CommandFailed(
      `${host} refused the signature: the key is not one of this App's, or the clock of this machine is wrong.`,
    );
  if (!response.ok) throw new CommandFailed(`${host} answered ${response.status}.`);
  return await response.json().catch(() => undefined);
}

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {};
