/**
 * `npm run chart:check`: renders the chart with the values in deploy/kubernetes/ and compares that with the plain objects beside them;
 * `-- --write` writes them again. With helm where it is installed (then it lints, too), else with deploy/chart/render.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';

const DEPLOY = import.meta.dirname;
const CHART = join(DEPLOY, 'chart', 'agent-broker');
const RELEASE = { Name: 'broker', Namespace: 'agent-broker', Service: 'Helm', IsInstall: true, IsUpgrade: false };

/** Whose names are the files of values in deploy/kubernetes/. */
export const VARIANTS = ['minimal', 'full'] as const;
type Variant = (typeof VARIANTS)[number];
type Thing = Record<string, unknown>;

export const valuesFile = (variant: Variant): string => join(DEPLOY, 'kubernetes', `${variant}.values.yaml`);
export const objectsFile = (variant: Variant): string => join(DEPLOY, 'kubernetes', `${variant}.yaml`);

/** SHA-256 of all that the objects follow from, in hex: of the chart's files and the values. It is in the first line of the objects. */
export function sourceHash(variant: Variant): string {
  const files = readdirSync(CHART, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const hash = createHash('sha256');
  for (const file of [...files.sort(), valuesFile(variant)])
    hash
      .update(`${relative(DEPLOY, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
}

/** The values that the templates see: those of the variant over those of the chart. */
export function valuesOf(variant: Variant): Thing {
  return merge(read(join(CHART, 'values.yaml')), read(valuesFile(variant)));
}

const read = (file: string): Thing => parse(readFileSync(file, 'utf8'));
const isThing = (value: unknown): value is Thing =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function merge(under: Thing, over: Thing): Thing {
  const merged = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = merged[name];
    merged[name] = isThing(below) && isThing(value) ? merge(below, value) : value;
  }
  return merged;
}

function renderWithHelm(variant: Variant): string {
  const values = ['--values', valuesFile(variant)];
  execFileSync('helm', ['lint', '--strict', CHART, ...values], { stdio: ['ignore', 'inherit', 'inherit'] });
  const words = ['template', RELEASE.Name, CHART, '--namespace', RELEASE.Namespace, '--kube-version', '1.33.0'];
  return execFileSync('helm', [...words, ...values], { encoding: 'utf8' });
}

function renderWithGo(variant: Variant): string {
  const { name, version, appVersion } = read(join(CHART, 'Chart.yaml'));
  const input = {
    Values: valuesOf(variant),
    Chart: { Name: name, Version: version, AppVersion: appVersion },
    Release: RELEASE,
  };
  const printed = execFileSync('go', ['run', join(DEPLOY, 'chart', 'render', 'main.go'), CHART], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode' },
  });
  const { 'NOTES.txt': notes, ...files } = JSON.parse(printed) as Record<string, string>;
  if (!notes) throw new Error('The chart has no notes.');
  return Object.values(files).join('\n---\n');
}

function has(program: string): boolean {
  try {
    execFileSync(program, ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The objects in an order that does not depend on who rendered them, without the comments of the templates. Kubernetes reads YAML 1.1. */
function normal(rendered: string, variant: Variant, engine: string): string {
  const objects = parseAllDocuments(rendered, { version: '1.1' })
    .map((document) => {
      const [problem] = [...document.errors, ...document.warnings];
      if (problem) throw problem;
      return document.toJS() as { kind: string; metadata: { name: string } } | null;
    })
    .filter((object) => object !== null)
    .sort((a, b) => (`${a.kind} ${a.metadata.name}` < `${b.kind} ${b.metadata.name}` ? -1 : 1));
  const head = `# Rendered by npm run chart:check -- --write with ${engine}, of sources with SHA-256 ${sourceHash(variant)}\n`;
  return (
    head + objects.map((object) => stringify(object, { version: '1.1', aliasDuplicateObjects: false })).join('---\n')
  );
}

const withoutHead = (text: string): string => text.slice(text.indexOf('\n'));

if (import.meta.main) {
  const engine = has('helm') ? 'helm' : 'deploy/chart/render';
  for (const variant of VARIANTS) {
    const text = normal(engine === 'helm' ? renderWithHelm(variant) : renderWithGo(variant), variant, engine);
    const file = objectsFile(variant);
    if (process.argv.includes('--write')) writeFileSync(file, text);
    else if (withoutHead(readFileSync(file, 'utf8')) !== withoutHead(text))
      throw new Error(`${file} is not what the chart renders. Run: npm run chart:check -- --write`);
    console.log(`${variant}: rendered by ${engine}`);
  }
}
