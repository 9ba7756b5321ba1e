/** The command line's result about a GitHub App, for programs and for people. */

import { isAbsolute, relative, resolve } from 'node:path';
import { stringify } from 'yaml';
import type { GitHubSite } from '../../broker/platforms/github-site.ts';
import { PROGRAM } from '../program-name.ts';
import type { AppInstallation } from './api.ts';

/** `key_file`: path of the key. `governance`: the lines for the governance file, in YAML. */
export type GitHubAppResult = {
  app_id: string;
  name: string;
  html_url: string;
  installation_url: string;
  key_file: string;
  installations: { installation_id: string; account: string; suspended: boolean }[];
  governance: string;
};

/** `html_url`: the App's page, whose path differs between github.com and Enterprise Server. */
export const installationUrl = (html_url: string): string => `${html_url}/installations/new`;

/** Builds the result for an App. `keyFile`: the path as the person wrote it. */
export function resultOf(
  site: GitHubSite,
  app: {
    appId: string;
    name: string;
    html_url: string;
    keyFile: string;
    installations: AppInstallation[];
  },
): GitHubAppResult {
  const { appId, name, html_url, keyFile, installations } = app;
  return {
    app_id: appId,
    name,
    html_url,
    installation_url: installationUrl(html_url),
    key_file: resolve(keyFile),
    installations: installations.map(({ id, account, suspended }) => ({
      installation_id: String(id),
      account,
      suspended,
    })),
    governance: governanceOf(site, appId, keyFile, installations),
  };
}

/** A single installation is written into the platform; with several, each connection names its own. */
function governanceOf(site: GitHubSite, appId: string, keyFile: string, installations: AppInstallation[]): string {
  const near = relative(process.cwd(), resolve(keyFile));
  const [only, other] = installations;
  const isEnterprise = site.web !== 'https://github.com';
  return stringify({
    platforms: {
      codehost: {
        use: 'github',
        ...(isEnterprise && { base_url: site.api, git_base_url: site.web }),
        auth: {
          type: 'app',
          app_id: appId,
          private_key: { file: near.startsWith('..') || isAbsolute(near) ? resolve(keyFile) : near },
          ...(other === undefined && { installation_id: only === undefined ? 'THE-NUMBER' : String(only.id) }),
        },
      },
    },
    connections: Object.fromEntries(
      (installations.length > 0 ? installations : [{ account: 'main' }]).map(({ account }) => [
        `${account}-github`,
        {
          platform: 'codehost',
          ...(other !== undefined && { secret: { env: `INSTALLATION_${account.toUpperCase().replaceAll('-', '_')}` } }),
        },
      ]),
    ),
  });
}

/** Formats the result for a person. */
export function describeGitHubApp(result: GitHubAppResult): string {
  const { app_id, name, key_file, installations, installation_url, governance } = result;
  const places = installations.map(
    ({ installation_id, account, suspended }) =>
      `  ${installation_id}  ${account}${suspended ? ' (suspended: an administrator there has to unsuspend it)' : ''}`,
  );
  const several = installations.length > 1 ? ['Each INSTALLATION variable holds the number of its account.', ''] : [];
  return [
    `${name} is the App ${app_id}. Its key is in ${key_file}: keep it as you keep passwords, and out of repositories.`,
    ...(places.length > 0
      ? ['It is installed at:', ...places]
      : [
          `It is installed nowhere yet. Install it at ${installation_url}; the number that the address ends with afterwards is its installation_id.`,
        ]),
    '',
    'For the governance file, which names the key relative to itself:',
    '',
    governance.replaceAll(/^(?=.)/gm, '  '),
    ...several,
    `Apply it: ${PROGRAM} apply governance.yaml`,
  ].join('\n');
}
