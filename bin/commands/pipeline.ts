import { type Command, Option } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { AddOptions } from '../pipelines/pipelines.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addPipelineCommands(program: Command): void {
  const pipeline = program
    .command('pipeline')
    .description('CI jobs and workloads that plan or apply governance files, with tokens of their own platform');
  const load = () => import('../pipelines/pipelines.ts');

  withConnection(pipeline.command('list').description('which there are, and when they were last used'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listPipelines(options));

  withConnection(pipeline.command('add <name>').description('trust one; prints what to write into the pipeline'))
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
    .option('--issuer <url>', 'any other platform: `iss` of its tokens')
    .option('--subject <text>', '`sub` of its tokens, whole; instead of what the options above make of it')
    .option('--jwks-uri <url>', 'where the keys of the issuer are, when it publishes no discovery document')
    .option('--json', 'print JSON')
    .action(async (name: string, options: AddOptions) => (await load()).addPipeline(name, options));

  withConnection(pipeline.command('remove <name>').description('trust one no more; what it applied stays'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).removePipeline(name, options));
}
