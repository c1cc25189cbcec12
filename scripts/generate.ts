// Writes what is derived from the definitions of events and settings; with `--check` fails when a file is not what
// would be written.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { CODES } from '@oxbow/core'
import { eventJsonSchema } from '@oxbow/core/schema'
import { describeConfig, describeMcp, describeModels } from '@oxbow/server'
import { configurationPage } from './configuration-page.ts'
import { errorsPage } from './errors-page.ts'
import { eventsPage } from './events-page.ts'

const schema = eventJsonSchema()
const files = {
  'docs/reference/schema/events.json': `${JSON.stringify(schema, null, 2)}\n`,
  'docs/reference/events.md': eventsPage(schema),
  'docs/reference/errors.md': errorsPage(CODES),
  'docs/reference/configuration.md': configurationPage(describeConfig(), describeModels(), describeMcp()),
}

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

const check = process.argv.includes('--check')
for (const [path, text] of Object.entries(files)) {
  if (read(path) === text) continue
  if (check) {
    console.error(`${path} is out of date: run "npm run generate" and commit what it writes.`)
    process.exitCode = 1
  } else {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    console.log(`wrote ${path}`)
  }
}
