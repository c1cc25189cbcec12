// The third-party programs that these tests need, in a separate project.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeEach } from 'vitest'

export const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const installed = existsSync(path('./node_modules'))
const missing = 'The MCP servers and the conformance suite are not installed: npm ci --prefix test/mcp'

/** Skips the tests of a file where they are not installed; where `CI` is set they must be. */
export const needsInstalled = (): void =>
  beforeEach(({ skip }) => {
    if (process.env.CI !== undefined && !installed) throw new Error(missing)
    skip(!installed, missing)
  })
