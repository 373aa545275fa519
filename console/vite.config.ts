import { defineConfig } from "vite";

// The server has a fixed table of files (src/app/console/files.rs), so their names are fixed, and it sends an ETag with
// each. Addresses are relative, for servers behind a proxy that adds a prefix.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/app/console/dist",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "console.js",
        assetFileNames: "console[extname]",
        codeSplitting: false,
      },
    },
  },
});
