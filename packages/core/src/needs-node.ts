// Evaluated before all other modules: an older Node lacks functions that they need, and its own errors name those only.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18))
  throw new Error(
    `Oxbow needs Node 22.18 or newer; this is ${process.versions.node}. Install it from https://nodejs.org.`,
  )
