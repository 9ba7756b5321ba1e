import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../broker/environment/config.ts';
import { limitHeapGrowth, limitYoungGeneration, releaseStartMemory } from '../../broker/runtime/collect-garbage.ts';
import type { Services } from '../../broker/services.ts';
import { CommandFailed } from '../failure.ts';
import { readGovernanceFile, refuse } from '../governance-file.ts';
import { PROGRAM } from '../program-name.ts';
import { commandLine } from '../server-entry.ts';

type Options = { config?: string; sandbox: boolean; acceptClock?: true; printLink?: true };

export function addServeCommand(program: Command, stop: AbortSignal = new AbortController().signal): void {
  program
    .command('serve')
    .description('run the broker: the /v1 API, the owner API and the console')
    .option('--config <governance.yaml>', 'apply this governance file at the start')
    .option('--accept-clock', 'start though the clock is behind the newest heartbeat in the store (SQLite)')
    .option('--print-link', 'print a sign-in link of the first admin, which is the default at a terminal')
    .option('--no-sandbox', 'create no sandbox platform and agent in a new data folder')
    .action(async (options: Options) => {
      limitYoungGeneration();
      limitHeapGrowth();
      const { ConfigError, readConfig } = await import('../../broker/environment/config.ts');
      const { serve } = await import('../../broker/process/main.ts');
      const sandboxes = await import('../../broker/process/sandbox.ts');
      const { startFault } = await import('../../broker/process/start-fault.ts');
      const { ignoreDefaultFolder } = await import('../../broker/runtime/ignored-folder.ts');
      let config: ReturnType<typeof readConfig>;
      try {
        config = readConfig(process.env);
      } catch (error) {
        if (error instanceof ConfigError) throw new CommandFailed(error.message);
        throw error;
      }
      // Removed so that crash reports and child processes do not get the key in their environment.
      delete process.env.AGENT_BROKER_MASTER_KEY;
      delete process.env.AGENT_BROKER_MASTER_KEY_PREVIOUS;
      delete process.env.DATABASE_URL;
      delete process.env.DATABASE_READ_URL;
      delete process.env.RATE_LIMIT_URL;
      delete process.env.OUTBOUND_PROXY;
      delete process.env.METRICS_TOKEN;
      delete process.env.OIDC_CLIENT_SECRET;
      delete process.env.OTEL_EXPORTER_OTLP_HEADERS;

      // At a terminal the process stops without draining.
      const drainMs = 1000 * (config.drainSeconds ?? (process.stdout.isTTY ? 0 : 5));
      const hadKey = existsSync(config.keyFile);
      const isNew = !config.databaseUrl && !existsSync(join(config.dataFolder, 'store', 'broker.db'));
      ignoreDefaultFolder(config.dataFolder);
      const wanted = options.sandbox && options.config === undefined;
      let sandbox =
        wanted && (isNew || sandboxes.hasSandbox(config.dataFolder))
          ? await sandboxes.startSandboxPlatform(config.dataFolder).catch((error) => {
              throw startFault(error, config);
            })
          : undefined;
      // Without a terminal the output is a log: anybody who reads it within 15 minutes could sign in as an admin.
      const printsLink = options.printLink ?? process.stdout.isTTY;
      let link: string | undefined;
      let isRestored = false;
      let running: Awaited<ReturnType<typeof serve>>;
      try {
        running = await serve(config, {
          drainMs,
          interrupt: stop,
          acceptClock: options.acceptClock ?? false,
          ...(sandbox && { allowPrivate: [new URL(sandbox.url).host] }),
          beforeServing: async (services) => {
            const { firstStart, firstAdminLink } = await import('../../broker/process/first-start.ts');
            const organisationId = await firstStart(services);
            if (sandbox && !(await sandboxes.settleSandbox(services, organisationId, sandbox))) {
              await sandbox.close();
              sandbox = undefined;
            }
            const { findRestored } = await import('../../broker/store/restored.ts');
            isRestored = (await findRestored(services.broker.store.db, organisationId)) !== undefined;
            if (options.config) await applyFile(services, organisationId, options.config);
            if (printsLink && !config.oidc) link = await firstAdminLink(services.broker, organisationId);
          },
        });
      } catch (error) {
        await sandbox?.close();
        // The next start will find the key file, and so print no notice about it.
        if (!hadKey && existsSync(config.keyFile)) process.stderr.write(`${newKeyNotice(config.keyFile)}\n`);
        // The start was interrupted: errors after that are consequences.
        if (stop.aborted) return;
        throw error;
      }
      releaseStartMemory();
      const { addressWarning } = await import('../../broker/reach.ts');
      const elsewhere = addressWarning(running.baseUrl) === undefined;
      process.stdout.write(
        greeting({ ...running, config, file: options.config, link, isRestored, elsewhere, sandboxUrl: sandbox?.url }),
      );

      if (!stop.aborted) await once(stop, 'abort');
      const { log } = running.broker;
      const draining = drainMs > 0 ? `taking calls for ${drainMs / 1000} s more, then ` : '';
      const stopping = `${draining}finishing what is in flight (10 s at most); again to stop immediately`;
      // Without a terminal standard error is a log, whose lines programs parse.
      if (process.stderr.isTTY) process.stderr.write(`${stop.reason}: ${stopping} …\n`);
      else log.info({ signal: stop.reason }, stopping);
      await running.stop();
      await sandbox?.close();
      // process.exit waits for the threads of the pool, and one blocked by a file system does not return. Everything else is closed by now.
      if (running.broker.auditFolder?.isBusy()) {
        log.error('AUDIT_FOLDER does not answer: killing this process, which cannot exit');
        process.kill(process.pid, 'SIGKILL');
      }
      process.exit(0);
    });
}

/**
 * Applies the file at the start; errors in it stop the start. Conflicts with later changes by owners to an agent of the file are
 * warnings.
 */
async function applyFile(services: Services, organisationId: string, file: string): Promise<void> {
  const { applyGovernance } = await import('../../broker/config-plan/apply-recorded.ts');
  const { operatorAtStart } = await import('../../broker/audit/record-change.ts');
  const { governance, values } = await readGovernanceFile(file);
  const applied = await applyGovernance(services, operatorAtStart(organisationId), governance, values, {
    atStart: true,
    detail: `serve --config ${file}`,
  });
  if (!applied.ok) return await refuse(applied.problems);
  const { formatProblem } = await import('../../broker/config-file/problems.ts');
  const { audienceOfAgent } = await import('../../broker/auth/authenticate-workload.ts');
  for (const warning of applied.plan.warnings) process.stderr.write(`warning: ${formatProblem(warning)}\n`);
  for (const { agent, token } of applied.bootstrapTokens)
    process.stdout.write(`Bootstrap token of ${agent} (24 hours, shown once): ${token.reveal()}\n`);
  for (const { agent, agentId } of applied.trusting)
    process.stdout.write(
      `Audience of the workload of ${agent}: ${audienceOfAgent(services.broker.baseUrl, agentId)}\n`,
    );
}

const newKeyNotice = (keyFile: string): string =>
  `A new master key is in ${relative(process.cwd(), keyFile)}. Keep a copy of it separately from the store's backups.`;

function greeting(at: {
  baseUrl: string;
  masterKeyCreated: boolean;
  /** A sign-in link for the first admin, if one is to be printed. */
  link: string | undefined;
  /** Whether the store was restored and its review is pending. */
  isRestored: boolean;
  /** Whether other devices may be able to open the links, judging by the address. */
  elsewhere: boolean;
  sandboxUrl: string | undefined;
  /** The governance file that was applied. */
  file: string | undefined;
  config: Pick<Config, 'dataFolder' | 'databaseUrl' | 'keyFile' | 'oidc'>;
}): string {
  const { baseUrl, config, link, sandboxUrl } = at;
  const folder = relative(process.cwd(), config.dataFolder) || '.';
  const program = programOn(folder, process.platform);
  const lines = [
    '',
    `Agent Broker is running at ${baseUrl}`,
    '',
    `  Store     ${config.databaseUrl ? 'PostgreSQL' : `SQLite in ${join(folder, 'store')}`}`,
    `  Console   ${link ?? `${baseUrl}/console/sign-in`}`,
    config.oidc
      ? `            (owners sign in at ${new URL(config.oidc.issuer).host}; add one: ${program} owner add)`
      : link === undefined
        ? `            (a link that signs you in: ${program} owner link)`
        : `            (signs you in once, within 15 minutes; another: ${program} owner link)`,
  ];
  if (!at.elsewhere) lines.push(`  Phone     cannot open these links yet: ${baseUrl}/console/notices says how`);
  if (sandboxUrl) lines.push(`  Sandbox   platform "sandbox" at ${sandboxUrl}, agent "sandbox-agent"`);
  if (at.masterKeyCreated) lines.push('', newKeyNotice(config.keyFile));
  if (at.isRestored) lines.push('', `Next, review what was restored; until then no call is made: ${program} restored`);
  else if (sandboxUrl)
    lines.push(
      '',
      'Next, make a governed call:',
      '',
      ...firstCall(baseUrl, process.platform, program).map((line) => `  ${line}`),
      '',
      `Or see the whole story in ten seconds: ${PROGRAM} demo`,
    );
  else if (at.file === undefined) lines.push('', `Next, say what your agents may do: ${program} plan governance.yaml`);
  else lines.push('', `Next, when you change the file: ${program} plan ${commandLine([at.file])}`);
  return `${lines.join('\n')}\n\n`;
}

const FIRST_READ = '{"platform":"sandbox","endpoint":"/issues","method":"GET","scope":"sandbox:issues.read"}';

/**
 * Returns the command that starts the program on the broker of a data folder: with the variable, where the folder is not the default, so that a command
 * in another terminal does not connect to another broker.
 */
export function programOn(folder: string, platform: NodeJS.Platform): string {
  if (folder === '.agent-broker') return PROGRAM;
  return platform === 'win32'
    ? `$env:AGENT_BROKER_DATA='${folder.replaceAll("'", "''")}'; ${PROGRAM}`
    : `AGENT_BROKER_DATA=${commandLine([folder], false)} ${PROGRAM}`;
}

/** Example lines for a shell; for PowerShell on Windows, whose quotes differ, and where `curl` is another program in older versions. */
export const firstCall = (baseUrl: string, platform: NodeJS.Platform, program: string): string[] =>
  platform === 'win32'
    ? [
        `Invoke-RestMethod ${baseUrl}/v1/actions -Method Post -ContentType application/json \``,
        `  -Headers @{ Authorization = "Bearer $(${program} token)" } \``,
        `  -Body '${FIRST_READ}'`,
      ]
    : [
        `curl -s ${baseUrl}/v1/actions \\`,
        `  -H "Authorization: Bearer $(${program} token)" -H "Content-Type: application/json" \\`,
        `  -d '${FIRST_READ}'`,
      ];
