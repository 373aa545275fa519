import { defineConfig } from "vite";

// File names are fixed, because the server has a fixed table of files (src/app/console/files.rs), each with an ETag.
// Addresses are relative, because a proxy may add a path prefix.
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
