import { defineConfig } from 'vitest/config'

const source = ['oxbow-source']

export default defineConfig({
  resolve: { conditions: source },
  ssr: { resolve: { conditions: source, externalConditions: source } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    // Children and worker threads of a test run from source, as the test does.
    execArgv: ['--conditions=oxbow-source'],
    setupFiles: ['test/setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    maxWorkers: 2,
  },
})
