import type { ICruiseOptions, IForbiddenRuleType } from 'dependency-cruiser'

// Which package may import which. Arrows point one way; tests may use everything.
const arrows: Record<string, string[]> = {
  core: [],
  guard: [],
  models: ['core'],
  backends: ['core'],
  testing: ['core'],
  harness: ['core', 'knowledge'],
  knowledge: [],
  server: ['core', 'models', 'backends'],
  oxbow: ['core', 'models', 'backends', 'harness', 'knowledge', 'server', 'testing'],
}

export const packages = Object.keys(arrows)

/** The rooms of packages, low to high: a file imports from its own room and from those below it. */
export const rooms = {
  core: [
    'needs-node.ts',
    'errors.ts',
    'checks',
    'events',
    'authority.ts',
    'ports.ts',
    'model.ts',
    'state',
    'journal',
    'tools',
    'permissions',
    'rows',
    'agents',
    'engine-internals.ts',
    'children',
    'approvals',
    'turn',
    'perform',
    'session',
    'engine',
    'index.ts',
    'internal.ts',
  ],
  server: [
    'dependency.ts',
    'failures.ts',
    'loopback.ts',
    'config',
    'http',
    'telemetry',
    'principal.ts',
    'existing-session.ts',
    'health.ts',
    'openapi.ts',
    'models',
    'identity',
    'stream',
    'approvals',
    'audit',
    'ag-ui',
    'response',
    'sessions',
    'chat',
    'mcp',
    'tasks',
    'agent-protocol',
    'service.ts',
    'index.ts',
  ],
} as const

const roomOf = (name: string, room: string): string =>
  `^packages/${name}/src/${room.replaceAll('.', String.raw`\.`)}${room.endsWith('.ts') ? '$' : '/'}`

const test = String.raw`\.(test|fixture)\.ts$`

const rules: ICruiseOptions = {
  validate: true,
  ruleSet: {
    forbidden: [
      { name: 'no-cycles', severity: 'error', from: { pathNot: test }, to: { circular: true } },
      { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
      {
        name: 'only-public-names',
        comment: 'Other packages are imported by their name, never by a path into them.',
        severity: 'error',
        from: { path: '^packages/([^/]+)/' },
        to: {
          path: '^packages/([^/]+)/src/',
          pathNot: [
            '^packages/$1/',
            '^packages/[^/]+/src/(index|internal|response/index|schema/index|events/schema|conformance/index|transfer/index|memory/index|sqlite/index|compaction/index)\\.ts$',
          ],
        },
      },
      ...Object.entries(arrows).map(
        ([from, to]): IForbiddenRuleType => ({
          name: `arrows-of-${from}`,
          severity: 'error',
          from: { path: `^packages/${from}/src/`, pathNot: test },
          to: { path: '^packages/', pathNot: [from, ...to].map((it) => `^packages/${it}/`) },
        }),
      ),
      ...Object.entries(rooms).flatMap(([name, all]) =>
        all.slice(0, -1).map(
          (room, rank): IForbiddenRuleType => ({
            name: `imports-downwards-from-${room}-of-${name}`,
            severity: 'error',
            from: { path: roomOf(name, room), pathNot: test },
            to: { path: all.slice(rank + 1).map((it) => roomOf(name, it)), pathNot: test },
          }),
        ),
      ),
      {
        name: 'core-loads-no-schema-library',
        comment: 'zod is loaded at borders only. events/types.ts imports types of it, which are erased.',
        severity: 'error',
        from: { path: '^packages/core/src/', pathNot: [test, '^packages/core/src/events/(schema|types)\\.ts$'] },
        to: { path: 'node_modules/zod' },
      },
    ],
  },
  doNotFollow: { path: 'node_modules' },
  exclude: { path: '/dist/' },
  tsPreCompilationDeps: true,
  enhancedResolveOptions: {
    exportsFields: ['exports'],
    conditionNames: ['oxbow-source', 'import', 'node', 'default'],
    extensions: ['.ts', '.mjs', '.js'],
  },
}

export default rules
