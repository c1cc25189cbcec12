import { defineConfig } from 'vitest/config'

const source = ['oxbow-source']

/**
 * Suites that kill processes, run for a fixed time, install packages, or need a process of their own: `npm run
 * test:long`.
 */
const long = [
  'test/{clients,cluster,crash,deploy,fuzz,mcp,remote}/**/*.test.ts',
  'test/{docs,docs-site,isolation,packages,processes,recording,storm,waiting}.test.ts',
  'examples/**/tutorial.test.ts',
  'packages/backends/src/**/workers.test.ts',
  'packages/backends/src/{postgres,redis,tiered,transfer}/*.test.ts',
  'packages/backends/src/sqlite/{conformance,integrity/loss}.test.ts',
  'packages/harness/src/compaction/compaction.property.test.ts',
  'packages/knowledge/src/**/{store,quality,hostile}.test.ts',
  'packages/models/src/*/recordings.test.ts',
  'packages/core/src/agents/named-models.test.ts',
  'packages/oxbow/src/{approvals,cli,knowledge,models,named-models}.test.ts',
  'packages/oxbow/src/commands/{compact,store}.test.ts',
  'packages/server/src/ag-ui/fuzz.test.ts',
  'packages/server/src/stream/slow-readers.test.ts',
]
const everywhere = ['**/node_modules/**', '**/dist/**']

export default defineConfig({
  resolve: { conditions: source },
  ssr: { resolve: { conditions: source, externalConditions: source } },
  test: {
    // Children and worker threads of a test run from source, as the test does.
    execArgv: ['--conditions=oxbow-source'],
    setupFiles: ['test/setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'short',
          include: ['packages/*/src/**/*.test.ts', 'test/*.test.ts', 'examples/**/*.test.ts'],
          exclude: [...everywhere, ...long],
          // Files share two processes: loading the packages for each file costs more than most files' tests.
          isolate: false,
        },
      },
      { extends: true, test: { name: 'long', include: long, exclude: everywhere } },
    ],
  },
})
