// `npm run recording`: docs/images/oxbow.svg, from a run of the command line.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { record } from './recording/record.ts'
import { svgOf } from './recording/svg.ts'

writeFileSync(join(import.meta.dirname, '../docs/images/oxbow.svg'), svgOf(await record()))
