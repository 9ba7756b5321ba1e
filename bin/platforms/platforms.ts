/** Lists platforms, and updates built-in ones. */
import { commandWith } from '../command-with.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { platformNamed } from '../owner-platforms.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { printJson, printLines, printResult, terminalWidth } from '../terminal/output.ts';
import { canAsk, confirm } from '../terminal/prompt.ts';
import { table } from '../terminal/table.ts';

type Options = ConnectionOptions & { json?: boolean };

const COLUMNS = [
  { title: 'PLATFORM', least: 8 },
  { title: 'NAME', least: 8 },
  { title: 'STATE' },
  { title: 'CONNECTIONS', least: 11 },
];

export async function listPlatforms(options: Options): Promise<void> {
  const { platforms } = await (await openOwnerApi(options)).ask('GET', '/owner/platforms');
  const rows = platforms.map((one) => [
    styled('bold', one.platform_id),
    line`${one.name}`,
    line`${[...(one.suspended ? ['stopped'] : []), one.update_available ? 'has an update' : 'up to date'].join(', ')}`,
    line`${one.connections.map(({ label }) => label).join(', ') || 'none'}`,
  ]);
  printResult(options, platforms, () =>
    rows.length === 0
      ? [line`There are no platforms. Add one: ${commandWith(options, 'add github')}`]
      : [
          ...table(COLUMNS, rows, terminalWidth()),
          ...(platforms.some((one) => one.update_available)
            ? [line``, line`What an update changes: ${commandWith(options, 'platform update --dry-run')}`]
            : []),
        ],
  );
}

export type UpdateOptions = Options & { dryRun?: true; yes?: true };

/** Most changes that are shown of a platform, and most characters of each; `--json` includes everything. */
const MAX_SHOWN = 40;
const MAX_SHOWN_LENGTH = 300;

/**
 * Updates each platform to the manifest of this release after showing the changes; with `dryRun` only shows them. Without names: all that have an update.
 * Throws CommandFailed when a platform does not exist, and when the person declined an update; WrongUsage without a terminal to ask at.
 */
export async function updatePlatforms(given: readonly string[], options: UpdateOptions): Promise<void> {
  const { dryRun = false, yes = false, json = false } = options;
  if (!dryRun && !yes && (json || !canAsk()))
    throw new WrongUsage('To update platforms without a terminal to ask at, or with --json, add --yes, or --dry-run.');
  const api = await openOwnerApi(options);
  const { platforms } = await api.ask('GET', '/owner/platforms');
  const chosen = given.length === 0 ? platforms : given.map((name) => platformNamed(api.broker, name, platforms));
  const results = [];
  const declined: string[] = [];
  for (const { platform_id, name, version: seen, update_available } of chosen) {
    if (!update_available) {
      if (given.length > 0 && !json)
        printLines([line`${styled('bold', platform_id)} has nothing to update to in this release.`]);
      continue;
    }
    const tried = await update(api, platform_id, { version: seen, dry_run: true });
    if (!json) printLines(whatChanges(platform_id, name, tried));
    const goesOn = !dryRun && (yes || (await confirm(`Update ${platform_id}?`)));
    if (!goesOn && !dryRun) declined.push(platform_id);
    const { version } = goesOn ? await update(api, platform_id, { version: seen, dry_run: false }) : tried;
    const { changes, warnings } = tried;
    results.push({ platform_id, version, updated: goesOn, changes, warnings });
    if (goesOn && !json)
      printLines([line`${styled('bold', platform_id)} has version ${String(version)} of its manifest.`]);
  }
  if (json) printJson(results);
  else if (results.length === 0 && given.length === 0)
    printLines([line`All platforms have the manifests of this release.`]);
  if (declined.length > 0) throw new CommandFailed(`Not updated: ${declined.join(', ')}.`);
}

const update = (api: OwnerApi, platformId: string, body: { version: number; dry_run: boolean }) =>
  api.ask('POST', `/owner/platforms/${encodeURIComponent(platformId)}/update`, body);

function whatChanges(
  id: string,
  name: string,
  { changes, warnings }: { changes: readonly string[]; warnings: readonly string[] },
): Line[] {
  const more = changes.length - MAX_SHOWN;
  return [
    line`${styled('bold', id)}${name === id ? '' : ` (${name})`}:`,
    ...changes
      .slice(0, MAX_SHOWN)
      .map((change) => line`  ${change.length > MAX_SHOWN_LENGTH ? `${change.slice(0, MAX_SHOWN_LENGTH)}…` : change}`),
    ...(more > 0 ? [line`  and ${String(more)} more`] : []),
    ...warnings.map((warning) => line`  ${styled('bold', 'Warning:')} ${warning}`),
  ];
}
