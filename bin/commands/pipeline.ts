import { type Command, Option } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { AddOptions } from '../pipelines/pipelines.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addPipelineCommands(program: Command): void {
  const pipeline = program
    .command('pipeline')
    .description('CI jobs and workloads that plan or apply governance files, with tokens of their own platform');
  const load = () => import('../pipelines/pipelines.ts');

  withConnection(pipeline.command('list').description('list the pipelines with their last use'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listPipelines(options));

  withConnection(
    pipeline.command('add <name>').description('add a trusted pipeline; prints the lines for its configuration'),
  )
    .addOption(
      new Option('--role <role>', 'viewer: it plans; admin: it applies, too')
        .choices(['viewer', 'admin'])
        .makeOptionMandatory(),
    )
    .option('--github <owner/repo>', 'a repository on GitHub, with --branch, --environment or --pull-requests')
    .option('--gitlab <group/project>', 'a project on gitlab.com, with --branch')
    .option('--branch <name>', 'jobs on this branch')
    .option('--environment <name>', 'jobs of this environment (GitHub)')
    .option('--pull-requests', 'jobs on pull requests (GitHub)')
    .option('--issuer <url>', 'other platforms: `iss` of its tokens')
    .option('--subject <text>', 'complete `sub` of its tokens, instead of the one composed from the options above')
    .option('--jwks-uri <url>', 'URL of the issuer’s keys, if it publishes no discovery document')
    .option('--json', 'print JSON')
    .action(async (name: string, options: AddOptions) => (await load()).addPipeline(name, options));

  withConnection(pipeline.command('remove <name>').description('remove a trusted pipeline; what it applied stays'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).removePipeline(name, options));
}
